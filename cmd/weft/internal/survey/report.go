// Package survey measures the collectives of weft beside those of Open MPI and beside what
// the network allows, says which algorithm is best where, and what calls would cost on a
// network that is not here.
package survey

import (
	"encoding/json"
	"os"
	"slices"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/internal/bench"
)

// Report is what came of a survey. Times are in microseconds.
type Report struct {
	Environment bench.Environment `json:"environment"`
	// Provider is what was measured, or Simulated the network that was reckoned with.
	Provider  string `json:"provider,omitempty"`
	Simulated string `json:"simulated,omitempty"`
	// Assumed is what that network was taken to have, by the names of ParseNetwork.
	Assumed map[string]string `json:"assumed,omitempty"`
	Arena   bool              `json:"arena,omitempty"`    // weft's ranks had their data in arenas
	OpenMPI string            `json:"open_mpi,omitempty"` // its version
	Rounds  int               `json:"rounds,omitempty"`
	// Seconds is how long each case was measured in each round.
	Seconds float64 `json:"seconds,omitempty"`
	// Interrupted is a survey that was ended before all was measured.
	Interrupted bool `json:"interrupted,omitempty"`
	// Network is what two ranks say about it, by bytes.
	Network []Probe `json:"network,omitempty"`
	// Surroundings are what the simulator has its network from.
	Surroundings []*Surroundings `json:"surroundings,omitempty"`
	Results      []*Result       `json:"results"`
	// Predictions is how good those of the simulator are, if it was asked.
	Predictions *Predictions `json:"predictions,omitempty"`
	// Table is the one of Choices, in the form of the environment, if that was asked for.
	Table []string `json:"table,omitempty"`
	// Missing is what was not measured.
	Missing []Missing `json:"missing,omitempty"`
}

// Probe is what a message, a call of two ranks and a byte take, by round.
type Probe struct {
	Bytes int `json:"bytes"`
	// Message is half a round trip.
	Message Series `json:"message_us"`
	Combine Series `json:"combine_us"`
	Copy    Series `json:"copy_us"`
	// Exchange is a call in which two ranks put to each other (see Surroundings.Combines), Put one in which one of them
	// does, and Reduce one in which the other combines that; Barrier one in which they tell each
	// other and move nothing, Empty one in which they do not even that, and Stream what a put
	// takes a rank where many follow each other. They are measured for the simulation.
	Exchange Series `json:"exchange_us,omitempty"`
	Put      Series `json:"put_us,omitempty"`
	Reduce   Series `json:"reduce_us,omitempty"`
	Barrier  Series `json:"barrier_us,omitempty"`
	Empty    Series `json:"empty_us,omitempty"`
	Stream   Series `json:"stream_us,omitempty"`
}

// Surroundings are what the ranks of a job found out about the network, for the simulation,
// after they made the calls of a result: two of them by themselves, and all that share cores
// together.
type Surroundings struct {
	Collective string `json:"collective"`
	Ranks      int    `json:"ranks"`
	Bytes      int    `json:"bytes"`
	// Combines: two ranks that put more than 8 B to each other did so in a ReduceScatter, and not in an Allgather.
	Combines bool    `json:"combines,omitempty"`
	Network  []Probe `json:"network,omitempty"`
	Crowd    *Crowd  `json:"crowd,omitempty"`
}

// Crowd is how long a barrier of ranks that share cores takes, an exchange of a few bytes by
// Bruck and directly, and, if that was measured, one of more, and a Bcast or a Reduce of as much as
// the call has by a tree.
type Crowd struct {
	Barrier  Series    `json:"barrier_us"`
	Short    Series    `json:"short_us"`
	Direct   Series    `json:"direct_us"`
	Exchange *Exchange `json:"exchange,omitempty"`
	Tree     *Tree     `json:"tree,omitempty"`
}

// Exchange is how long one of so many bytes takes in which each puts to all at once, and one
// in which it puts to one after the other: an Allgather, direct and by Bruck, or where the call
// combines a ReduceScatter, by pairs and by a ring.
type Exchange struct {
	Combines bool   `json:"combines,omitempty"`
	Bytes    int    `json:"bytes"`
	AtOnce   Series `json:"at_once_us"`
	InTurn   Series `json:"in_turn_us"`
}

// Tree is how long a Bcast or a Reduce of so many bytes takes by one.
type Tree struct {
	Collective string `json:"collective"`
	Bytes      int    `json:"bytes"`
	Took       Series `json:"us"`
}

// Result is one collective, on so many ranks, with so many bytes.
type Result struct {
	Collective string `json:"collective"`
	Ranks      int    `json:"ranks"`
	Bytes      int    `json:"bytes"`
	// Algorithm is the one that is taken where nobody says which.
	Algorithm string      `json:"algorithm"`
	Weft      Series      `json:"weft_us,omitempty"`
	Calls     []int       `json:"calls,omitempty"` // of weft, by round
	OpenMPI   *Comparison `json:"open_mpi,omitempty"`
	// Bound is by the alpha-beta-gamma model, from the probes.
	Bound *Comparison `json:"bound,omitempty"`
	// Algorithms has each of the collective's, if that was asked for, and behind them the
	// provider's own, if it has one.
	Algorithms []Algorithm `json:"algorithms,omitempty"`
	Failure    string      `json:"failure,omitempty"`
	// around is what the simulator is to know, if it is asked.
	around *Surroundings
}

// planned are the algorithms but for the provider's own, of which weft has no plan.
func (r *Result) planned() []Algorithm {
	n := slices.IndexFunc(r.Algorithms, func(a Algorithm) bool { return a.Name == schedule.Provider.String() })
	if n < 0 {
		return r.Algorithms
	}
	return r.Algorithms[:n]
}

// algorithm is the one of a name, which is added if it is not there.
func (r *Result) algorithm(name string) *Algorithm {
	for i := range r.Algorithms {
		if r.Algorithms[i].Name == name {
			return &r.Algorithms[i]
		}
	}
	r.Algorithms = append(r.Algorithms, Algorithm{Name: name})
	return &r.Algorithms[len(r.Algorithms)-1]
}

func (r *Result) drop(name string) {
	r.Algorithms = slices.DeleteFunc(r.Algorithms, func(a Algorithm) bool { return a.Name == name })
}

// Comparison is what weft was compared with.
type Comparison struct {
	Series Series `json:"us"`
	// Ratio is weft's median to this one, and Ratios those of the rounds.
	Ratio  float64 `json:"ratio"`
	Ratios Series  `json:"ratios"`
}

// Algorithm is what a call takes by an algorithm: as it was measured, by round, and as the
// simulator says, if that was asked for.
type Algorithm struct {
	Name string `json:"name"`
	Weft Series `json:"weft_us,omitempty"`
	// Predicted is the median of what the simulator says of each round, and Ratio that of
	// what it says to what was measured there.
	Predicted float64 `json:"predicted_us,omitempty"`
	Ratio     float64 `json:"predicted_ratio,omitempty"`
	// Calibrating: what the simulator knows of the network is from calls like this one.
	Calibrating bool `json:"calibrating,omitempty"`
}

// Predictions counts those that are within 30 % of what was measured: of all; of those
// that say something, as the simulator does not have its network from calls like them; and of
// those of calls that can be measured so well that this says something.
type Predictions struct {
	Near       int `json:"near"`
	All        int `json:"all"`
	NearOthers int `json:"near_without_calibrating"`
	Others     int `json:"all_without_calibrating"`
	NearSteady int `json:"near_steady"`
	Steady     int `json:"all_steady"`
}

// Missing says what was not measured, and how often it was to be.
type Missing struct {
	What  string `json:"what"`
	Why   string `json:"why"`
	Count int    `json:"count"`
}

// Series are values by round.
type Series []float64

// Median is 0 of nothing.
func (s Series) Median() float64 {
	if len(s) == 0 {
		return 0
	}
	return bench.Median(s)
}

// round is the value of one round, or nothing.
func (s Series) round(i int) Series {
	if i >= len(s) {
		return nil
	}
	return s[i : i+1]
}

// within is how far the simulator may be off.
const within = 0.3

// near says whether a prediction is good.
func (a Algorithm) near() bool { return isNear(a.Ratio) }

func isNear(ratio float64) bool { return ratio >= 1-within && ratio <= 1+within }

// steady says whether what was measured is as near to itself: the rounds with even numbers to
// the others. Where it is not, what a call takes is not known that well.
func (a Algorithm) steady() bool {
	var halves [2]Series
	for i, took := range a.Weft {
		halves[i%2] = append(halves[i%2], took)
	}
	return len(halves[1]) > 0 && isNear(halves[0].Median()/halves[1].Median())
}

// judge is nil without predictions.
func (r *Report) judge() *Predictions {
	var p Predictions
	for _, one := range r.Results {
		for _, a := range one.Algorithms {
			if a.Predicted == 0 {
				continue
			}
			near := 0
			if a.near() {
				near = 1
			}
			p.All++
			p.Near += near
			if !a.Calibrating {
				p.Others++
				p.NearOthers += near
			}
			if a.steady() {
				p.Steady++
				p.NearSteady += near
			}
		}
	}
	if p.All == 0 {
		return nil
	}
	return &p
}

// compare is nil if there is nothing to compare with.
func compare(weft, with Series) *Comparison {
	if len(weft) == 0 || len(with) == 0 {
		return nil
	}
	return &Comparison{Series: with, Ratio: weft.Median() / with.Median(), Ratios: bench.Ratios(weft, with)}
}

// missing counts what was not measured.
func (r *Report) missing(what, why string, count int) {
	i := slices.IndexFunc(r.Missing, func(m Missing) bool { return m.What == what && m.Why == why })
	if i < 0 {
		r.Missing = append(r.Missing, Missing{what, why, count})
	} else {
		r.Missing[i].Count += count
	}
}

// Failures counts the results that there are not.
func (r *Report) Failures() (n int) {
	for _, result := range r.Results {
		if result.Failure != "" {
			n++
		}
	}
	return n
}

// Write writes the report into a file, as JSON.
func (r *Report) Write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
