package main

import (
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/weft-go/weft/fabric"
)

// lookAround tries each provider of the library on its own, and then chooses
// as the other commands would. The error is that of the choice.
func lookAround(flags providerFlags, logger *slog.Logger) (*machine, error) {
	m := &machine{
		Library: fabric.LibraryVersion().String(),
		Headers: fabric.HeaderVersion().String(),
	}
	quiet := slog.New(slog.DiscardHandler)
	for _, name := range providerNames(flags) {
		c := candidate{Name: name}
		choice, err := fabric.Choose(fabric.Preference{Providers: []string{name}, Require: true, Domains: flags.Domain, Logger: quiet})
		if err != nil {
			c.Reason = reasonOf(err)
		} else {
			i := choice.Info
			c.Usable, c.Provider, c.Fabric, c.Domain, c.MaxMessage = true, i.Provider(), i.Fabric(), i.Domain(), i.MaxMessage()
			for _, d := range choice.Devices {
				c.Devices = append(c.Devices, device{d.Domain(), d.Fabric(), d.SourceName()})
			}
		}
		m.Providers = append(m.Providers, c)
	}
	choice, err := fabric.Choose(fabric.Preference{Providers: flags.Provider, Require: flags.Require, Domains: flags.Domain, Logger: logger})
	var none *fabric.ChoiceError
	switch {
	case err == nil:
		m.Chosen, m.Fabric, m.Domain = choice.Info.Provider(), choice.Info.Fabric(), choice.Info.Domain()
		m.reject(choice.Passed)
	case errors.As(err, &none):
		m.reject(none.Rejections)
	}
	return m, err
}

func (m *machine) reject(passed []fabric.Rejection) {
	m.Passed = []rejection{}
	for _, r := range passed {
		m.Passed = append(m.Passed, rejection{r.Provider, r.Reason.Error()})
	}
}

// reasonOf leaves away what a choice among one provider says around it.
func reasonOf(err error) string {
	var none *fabric.ChoiceError
	if errors.As(err, &none) && len(none.Rejections) == 1 {
		return none.Rejections[0].Reason.Error()
	}
	return err.Error()
}

// providerNames are those that would be tried, and those of the library.
func providerNames(flags providerFlags) []string {
	names := fabric.DefaultProviders()
	if len(flags.Provider) > 0 {
		names = slices.Clone(flags.Provider)
	}
	infos, err := fabric.Discover(fabric.Hints{AttributesOnly: true})
	if err != nil {
		return names
	}
	return append(names, slices.DeleteFunc(coreNames(infos), func(name string) bool { return slices.Contains(names, name) })...)
}

// coreNames are the names of the providers, each once, without layers and hooks.
func coreNames(infos []*fabric.Info) []string {
	var names []string
	for _, i := range infos {
		name, _, _ := strings.Cut(i.Provider(), ";")
		if !strings.HasPrefix(name, "ofi_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
