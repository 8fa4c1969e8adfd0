package doctor

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity says how much a finding matters.
type Severity int

// The severities. A Problem keeps the machine from using EFA, a Warning costs something
// or may become a problem, and a Note is to be known. Fine is what is as it should be.
const (
	Fine Severity = iota
	Note
	Warning
	Problem
)

var severityNames = [...]string{"fine", "note", "warning", "problem"}

func (s Severity) String() string { return severityNames[s] }

// MarshalText is for JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is for JSON.
func (s *Severity) UnmarshalText(text []byte) error {
	i := slices.Index(severityNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("there is no severity %q", text)
	}
	*s = Severity(i)
	return nil
}

// Finding is one thing that was looked at.
type Finding struct {
	// Kind names it, as in docs/doctor.md.
	Kind     Kind     `json:"kind"`
	Severity Severity `json:"severity"`
	// Looked is what was looked at, Found what was there, and Do what to do about it.
	Looked string `json:"looked_at"`
	Found  string `json:"found"`
	Do     string `json:"do,omitempty"`
}

// Report is what an examination has found.
type Report struct {
	// Usable says that an endpoint of EFA could be opened, and that nothing keeps the
	// process from it.
	Usable bool `json:"usable"`
	// Severity is that of the worst finding.
	Severity Severity  `json:"severity"`
	Findings []Finding `json:"findings"`
}

// find notes a finding of a kind.
func (x *examination) find(k Kind, looked, found string) {
	about := catalogue[k]
	x.findings = append(x.findings, Finding{Kind: k, Severity: about.severity, Looked: looked, Found: found, Do: about.do})
}

// gradeIf gives the last finding another severity: it may well be the reason for a
// problem, or is none where libfabric has another device.
func (x *examination) gradeIf(condition bool, s Severity) {
	if condition {
		x.findings[len(x.findings)-1].Severity = s
	}
}

// fine notes that something is as it should be.
func (x *examination) fine(looked, found string) {
	x.findings = append(x.findings, Finding{Kind: AsItShouldBe, Looked: looked, Found: found})
}

func (x *examination) report() *Report {
	r := &Report{Findings: x.findings}
	// Those of one severity stay in the order in which one thing needs the other.
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	if len(r.Findings) > 0 {
		r.Severity = r.Findings[0].Severity
	}
	r.Usable = x.Library.usable() && r.Severity < Problem
	return r
}
