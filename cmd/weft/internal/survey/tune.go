package survey

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/weft-go/weft/collective"
	"github.com/weft-go/weft/collective/schedule"
)

// better is how much less time an algorithm must take than the one for shorter calls to be
// taken instead, so that the table does not follow chance.
const better = 0.95

// Choices is the table of algorithms that were the fastest: for each collective with several,
// those of the least number of ranks for all below, and for every other number of ranks all
// lines again, if they are not the same. Where the fastest does not keep the order of the
// operands, the fastest that does goes before it.
func (r *Report) Choices() ([]collective.Choice, error) {
	var all []collective.Choice
	for _, kind := range schedule.Collectives() {
		if len(schedule.Algorithms(kind)) < 2 {
			continue
		}
		var before []collective.Choice
		for i, ranks := range r.ranksOf(kind) {
			lines, err := r.linesOf(kind, ranks)
			if err != nil {
				return nil, err
			}
			if i == 0 {
				ranks = 0
			}
			for j := range lines {
				lines[j].Ranks = ranks
			}
			if !sameLines(before, lines) {
				all = append(all, lines...)
			}
			before = lines
		}
	}
	return all, nil
}

// ranksOf are the numbers of ranks for which a collective was measured, the least first.
func (r *Report) ranksOf(kind schedule.Collective) []int {
	var ranks []int
	for _, one := range r.Results {
		if one.Collective == kind.String() && len(one.Algorithms) > 0 && one.Failure == "" {
			ranks = append(ranks, one.Ranks)
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

func sameLines(a, b []collective.Choice) bool {
	return slices.EqualFunc(a, b, func(a, b collective.Choice) bool { return a.Bytes == b.Bytes && a.Algorithm == b.Algorithm })
}

// linesOf are the lines of a collective on so many ranks, the shortest calls first.
func (r *Report) linesOf(kind schedule.Collective, ranks int) (lines []collective.Choice, err error) {
	var results []*Result
	for _, one := range r.Results {
		if one.Collective == kind.String() && one.Ranks == ranks && one.Failure == "" {
			results = append(results, one)
		}
	}
	slices.SortFunc(results, func(a, b *Result) int { return a.Bytes - b.Bytes })
	// What the provider does is known for the sizes that were measured, and it has an end
	// that is its own: the line after it begins behind the last of them.
	if n := len(results); n > 0 {
		longer := *results[n-1]
		longer.Bytes++
		longer.Algorithms = slices.DeleteFunc(slices.Clone(longer.Algorithms), func(a Algorithm) bool { return a.Name == schedule.Provider.String() })
		if len(longer.Algorithms) > 0 {
			results = append(results, &longer)
		}
	}
	var best, ordered schedule.Algorithm
	for i, one := range results {
		nextBest, err := one.fastest(best, func(schedule.Algorithm) bool { return true })
		if err != nil {
			return nil, err
		}
		nextOrdered, err := one.fastest(ordered, func(a schedule.Algorithm) bool { return schedule.KeepsOrder(kind, a) })
		if err != nil {
			return nil, err
		}
		if schedule.KeepsOrder(kind, nextBest) {
			nextOrdered = nextBest
		}
		if nextBest == best && nextOrdered == ordered {
			continue
		}
		ended := best == schedule.Provider
		best, ordered = nextBest, nextOrdered
		bytes := 0
		if i > 0 {
			bytes = between(results[i-1].Bytes, one.Bytes)
		}
		if ended {
			bytes = results[i-1].Bytes + 1
		}
		if ordered != best && ordered != schedule.Default {
			lines = append(lines, collective.Choice{Collective: kind, Bytes: bytes, Algorithm: ordered})
		}
		lines = append(lines, collective.Choice{Collective: kind, Bytes: bytes, Algorithm: best})
	}
	return lines, nil
}

// between is where one size ends and the next begins: in the middle, as sizes are multiples
// of each other.
func between(less, more int) int {
	return int(math.Round(math.Sqrt(float64(less) * float64(more))))
}

// fastest is the algorithm with the least median of those that may be taken, or the one from
// before, if that is about as fast.
func (r *Result) fastest(before schedule.Algorithm, may func(schedule.Algorithm) bool) (schedule.Algorithm, error) {
	least, usual := math.Inf(1), math.Inf(1)
	var fastest schedule.Algorithm
	for _, measured := range r.Algorithms {
		a, err := schedule.ParseAlgorithm(measured.Name)
		if err != nil {
			return 0, err
		}
		took := measured.Weft.Median()
		if took == 0 || !may(a) {
			continue
		}
		if a == before {
			usual = took
		}
		if took < least {
			least, fastest = took, a
		}
	}
	if least > usual*better {
		return before, nil
	}
	return fastest, nil
}

// PrintChoices writes a table in the form of collective/choice.go, and as what the
// environment may have.
func PrintChoices(w io.Writer, choices []collective.Choice) error {
	var code strings.Builder
	var list []string
	code.WriteString("var usual = []Choice{\n")
	for _, c := range choices {
		fmt.Fprintf(&code, "\t{schedule.Collective%s, %d, %d, schedule.%s},\n", identifier(c.Collective.String()), c.Ranks, c.Bytes, identifier(c.Algorithm.String()))
		list = append(list, c.String())
	}
	code.WriteString("}\n")
	_, err := fmt.Fprintf(w, "%s\n%s=%s\n", code.String(), collective.Variable, strings.Join(list, ","))
	return err
}

// identifier is the name in Go of what is called so.
func identifier(name string) string {
	var text strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		text.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return text.String()
}
