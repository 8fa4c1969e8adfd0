package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

type infoCommand struct {
	providerFlags
	JSON bool `help:"Print as JSON."`
}

// machine is what info shows.
type machine struct {
	Library   string      `json:"libfabric"`
	Headers   string      `json:"headers"`
	Chosen    string      `json:"chosen,omitempty"`
	Fabric    string      `json:"fabric,omitempty"`
	Domain    string      `json:"domain,omitempty"`
	Passed    []rejection `json:"passed_over"`
	Providers []candidate `json:"providers"`
}

// rejection is a provider that was passed over before the chosen one.
type rejection struct {
	Provider string `json:"provider"`
	Reason   string `json:"reason"`
}

// candidate is a provider of the library, and what weft can do with it here.
type candidate struct {
	Name       string `json:"name"`
	Usable     bool   `json:"usable"`
	Reason     string `json:"reason,omitempty"`
	Provider   string `json:"provider,omitempty"` // with its layers
	Fabric     string `json:"fabric,omitempty"`
	Domain     string `json:"domain,omitempty"`
	MaxMessage uint64 `json:"max_message,omitempty"`
	// Devices are all that it has here, that of Domain first.
	Devices []device `json:"devices,omitempty"`
}

// device is one that messages can go through.
type device struct {
	Domain  string `json:"domain"`
	Fabric  string `json:"fabric"`
	Address string `json:"address,omitempty"`
}

// Run shows what there is. It fails where nothing could be chosen, or a provider that
// was asked for by name cannot be used, after it has shown why.
func (c *infoCommand) Run(t *terminal) error {
	m, choiceErr := lookAround(c.providerFlags, t.logger)
	var err error
	if c.JSON {
		err = t.printJSON(m)
	} else {
		err = m.print(t)
	}
	if choiceErr != nil {
		return choiceErr
	}
	return errors.Join(err, m.missing(c.Provider))
}

// missing says which of the providers that were asked for cannot be used.
func (m *machine) missing(asked []string) error {
	var none []string
	for _, p := range m.Providers {
		if !p.Usable && slices.Contains(asked, p.Name) {
			none = append(none, p.Name+": "+p.Reason)
		}
	}
	if len(none) == 0 {
		return nil
	}
	return &missingError{"not usable here: " + strings.Join(none, "; ")}
}

func (m *machine) print(t *terminal) error {
	w := tabwriter.NewWriter(t.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "libfabric %s (weft was built with the headers of %s)\n\n", m.Library, m.Headers)
	fmt.Fprintf(w, "provider\tusable here\n")
	for _, p := range m.Providers {
		if p.Usable {
			fmt.Fprintf(w, "%s\tyes, as %s on %s (%s)\n", p.Name, p.Provider, p.Domain, p.Fabric)
			for _, d := range p.Devices {
				fmt.Fprintf(w, "\tdevice %s, address %s\n", d.Domain, d.Address)
			}
		} else {
			fmt.Fprintf(w, "%s\tno: %s\n", p.Name, p.Reason)
		}
	}
	fmt.Fprintln(w)
	for _, r := range m.Passed {
		fmt.Fprintf(w, "passed over %s: %s\n", r.Provider, r.Reason)
	}
	if m.Chosen != "" {
		fmt.Fprintf(w, "chosen: %s on %s (%s)\n", m.Chosen, m.Domain, m.Fabric)
	}
	return w.Flush()
}
