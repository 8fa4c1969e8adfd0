package survey

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/job"
	"github.com/weft-go/weft/internal/kernelcopy"
)

// survey is one that is under way.
type survey struct {
	Config
	report *Report
	folder string
	// openMPI: it is there.
	openMPI     bool
	steps, done int
	// notProvided are those that the provider does not do.
	notProvided map[*Result]bool
	// quickKernel: ranks have the kernel copy long results, as they find out for themselves.
	quickKernel bool
}

// MemoryError says that there is too little memory for anything that was to be measured.
type MemoryError struct{ Memory int }

func (e *MemoryError) Error() string {
	return fmt.Sprintf("the ranks may use %s of memory together, and nothing of what was asked for takes so little", sizeName(e.Memory))
}

// Run measures. What fails is in the report; the error is that of ctx, or of this machine.
// With an error there is a report if any round of a result is complete.
func Run(ctx context.Context, c Config) (*Report, error) {
	folder, err := os.MkdirTemp("", "weft-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	s := &survey{Config: c, folder: folder, report: &Report{
		Environment: bench.Describe(ctx), Provider: c.Provider, Arena: c.Arena, Rounds: c.Rounds, Seconds: c.Time.Seconds(),
	}}
	var ignored []job.Case
	if s.report.Results, ignored, err = c.newResults(); err != nil {
		return nil, err
	}
	if len(s.report.Results) == 0 {
		return nil, &MemoryError{c.Memory}
	}
	for _, one := range ignored {
		s.report.missing(fmt.Sprintf("%s of %s", one.Work, sizeName(one.Bytes)), fmt.Sprintf("the ranks may use %s of memory together", sizeName(c.Memory)), 1)
	}
	s.findOpenMPI(ctx)
	s.quickKernel = s.Provider == shm && kernelcopy.Measure().Quick()
	s.report.Network = newNetwork(s.Sizes)
	groups := s.groups()
	if c.Simulate {
		s.surround()
	}
	s.steps = c.Rounds * (1 + len(groups))
	for range c.Rounds {
		if err = s.round(ctx, groups); err != nil {
			s.report.Interrupted = true
			break
		}
	}
	s.conclude()
	if err != nil && len(s.report.Results) == 0 {
		return nil, err
	}
	return s.report, err
}

// groups are the results that one job measures: of a collective on so many ranks.
func (s *survey) groups() (groups [][]*Result) {
	for _, r := range s.report.Results {
		last := len(groups) - 1
		if last >= 0 && groups[last][0].Collective == r.Collective && groups[last][0].Ranks == r.Ranks {
			groups[last] = append(groups[last], r)
		} else {
			groups = append(groups, []*Result{r})
		}
	}
	return groups
}

func (s *survey) step(what string) {
	s.progress(s.steps, s.done, what)
	s.done++
}

// findOpenMPI looks for it once.
func (s *survey) findOpenMPI(ctx context.Context) {
	if err := job.MissingMPI(); err != nil {
		s.report.missing("Open MPI", err.Error(), len(s.report.Results)*s.Rounds)
		return
	}
	s.openMPI = true
	if text, err := bench.Output(ctx, []string{"mpirun", "--allow-run-as-root", "--version"}); err == nil {
		s.report.OpenMPI, _, _ = strings.Cut(text, "\n")
	}
}

// round has each job done once, weft's behind that of Open MPI.
func (s *survey) round(ctx context.Context, groups [][]*Result) error {
	s.step("the network")
	if err := s.probe(ctx); err != nil {
		return err
	}
	for _, group := range groups {
		s.step(fmt.Sprintf("%s on %d ranks", group[0].Collective, group[0].Ranks))
		if group[0].Failure != "" {
			continue
		}
		if err := s.measureOpenMPI(ctx, group); err != nil {
			return err
		}
		if err := s.measureWeft(ctx, group); err != nil {
			return err
		}
		if err := s.measureProvider(ctx, group); err != nil {
			return err
		}
	}
	return nil
}

// limit is when a job of so many cases has taken far too long, also on few cores.
func (s *survey) limit(cases int) time.Duration {
	return 30*time.Second + time.Duration(cases)*(20*time.Second+10*s.Time)
}

func (s *survey) measureOpenMPI(ctx context.Context, group []*Result) error {
	if !s.openMPI {
		return nil
	}
	what := fmt.Sprintf("Open MPI's %s on %d ranks", group[0].Collective, group[0].Ranks)
	if slices.ContainsFunc(s.report.Missing, func(m Missing) bool { return m.What == what }) {
		return nil
	}
	var cases []job.Case
	for _, r := range group {
		cases = append(cases, job.Case{Work: r.Collective, Bytes: r.Bytes})
	}
	m := job.OpenMPI{Folder: s.folder, Size: group[0].Ranks, Time: s.Time, Limit: s.limit(len(cases))}
	samples, err := m.Measure(ctx, cases)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		// What it has not done once it is not asked for again.
		s.report.missing(what, err.Error(), len(group)*s.Rounds)
		for _, r := range group {
			r.OpenMPI = nil
		}
		return nil
	}
	for i, r := range group {
		if r.OpenMPI == nil {
			r.OpenMPI = &Comparison{}
		}
		r.OpenMPI.Series = append(r.OpenMPI.Series, micros(samples[i]))
	}
	return nil
}

func (s *survey) measureWeft(ctx context.Context, group []*Result) error {
	w := worksheet{arena: s.Arena}
	firsts := make([]int, len(group))
	for i, r := range group {
		firsts[i] = len(w.cases)
		w.add(&r.Weft, job.Case{Work: r.Collective, Bytes: r.Bytes})
		algorithms := r.planned()
		for j := range algorithms {
			algorithm, err := schedule.ParseAlgorithm(algorithms[j].Name)
			if err != nil {
				return err
			}
			w.add(&algorithms[j].Weft, job.Case{Work: r.Collective, Algorithm: algorithm, Bytes: r.Bytes})
		}
		// Right behind its calls: the host of a virtual machine may give it other cores meanwhile.
		if around := r.around; around != nil {
			w.addNetwork(around.Network, around.Ranks, true, around.Combines)
			if around.Crowd != nil {
				w.addCrowd(around.Crowd)
			}
		}
	}
	samples, err := s.ranks(group[0].Ranks, len(w.cases)).Measure(ctx, w.cases)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		for _, r := range group {
			r.Failure = err.Error()
		}
		return nil
	}
	w.note(samples)
	for i, r := range group {
		r.Calls = append(r.Calls, samples[firsts[i]].Operations)
	}
	return nil
}

// measureProvider has the provider's own collectives do what weft's algorithms do, as one more
// of those. That is a job of its own: its failure is not one of weft's.
func (s *survey) measureProvider(ctx context.Context, group []*Result) error {
	if !s.Algorithms || group[0].Failure != "" {
		return nil
	}
	// What it has not done once it is not asked for again.
	asked := slices.DeleteFunc(slices.Clone(group), func(r *Result) bool { return s.notProvided[r] })
	if len(asked) == 0 {
		return nil
	}
	cases := make([]job.Case, len(asked))
	for i, r := range asked {
		cases[i] = job.Case{Work: r.Collective, Algorithm: schedule.Provider, Bytes: r.Bytes, Arena: s.Arena}
	}
	samples, why, err := s.ranks(group[0].Ranks, len(cases)).MeasureOffered(ctx, cases)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i, r := range asked {
		var reason string
		if err != nil {
			reason = err.Error()
		} else if reason = why[i]; reason == "" {
			a := r.algorithm(schedule.Provider.String())
			a.Weft = append(a.Weft, micros(samples[i]))
			continue
		}
		r.drop(schedule.Provider.String())
		if s.notProvided == nil {
			s.notProvided = make(map[*Result]bool)
		}
		s.notProvided[r] = true
		s.report.missing("the provider's own "+r.Collective, reason, s.Rounds)
	}
	return nil
}

func (s *survey) ranks(size, cases int) job.Ranks {
	return job.Ranks{Command: s.Command, Folder: s.folder, Provider: s.Provider, Size: size, Time: s.Time, Limit: s.limit(cases)}
}

func micros(s bench.Sample) float64 { return s.Typical * 1e6 }

// conclude compares what was measured. What an interrupt has left without a round of weft's is
// left out.
func (s *survey) conclude() {
	s.report.Results = slices.DeleteFunc(s.report.Results, func(r *Result) bool { return len(r.Weft) == 0 && r.Failure == "" })
	for _, r := range s.report.Results {
		if r.Failure != "" {
			r.OpenMPI, r.Weft, r.Algorithms = nil, nil, nil
			continue
		}
		if r.OpenMPI != nil {
			// It goes first, and may have a round more.
			r.OpenMPI = compare(r.Weft, r.OpenMPI.Series[:len(r.Weft)])
		}
		if bounds, err := s.bounds(r); err == nil {
			r.Bound = compare(r.Weft, bounds)
		} else {
			r.Failure = err.Error()
		}
		if s.Simulate {
			if err := s.foretell(r); err != nil {
				r.Failure = err.Error()
			}
		}
	}
	s.report.Predictions = s.report.judge()
}
