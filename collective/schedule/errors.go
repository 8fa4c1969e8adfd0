package schedule

import "fmt"

// ArgumentError is about an argument for which there is no plan.
type ArgumentError struct {
	Name  string // such as "rank"
	Value int
	Want  string // what would be right
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("schedule: %s %d, want %s", e.Name, e.Value, e.Want)
}

// AlgorithmError says that a collective has no such algorithm, or none for what was
// asked of it.
type AlgorithmError struct {
	Collective Collective
	Algorithm  Algorithm
	Want       string // what would be right
}

func (e *AlgorithmError) Error() string {
	return fmt.Sprintf("schedule: %s by %s, want %s", e.Collective, e.Algorithm, e.Want)
}

// NameError says that nothing has the name that was parsed.
type NameError struct {
	Name string
	Want string // the names that there are
}

func (e *NameError) Error() string {
	return fmt.Sprintf("schedule: %q, want one of %s", e.Name, e.Want)
}
