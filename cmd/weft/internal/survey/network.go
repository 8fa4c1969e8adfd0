package survey

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-go/weft/collective/schedule/cost"
)

// networks are those that can be reckoned with where they are not.
var networks = map[string]func() cost.Network{"efa": cost.EFA}

// SettingError is about a setting of a network that cannot be.
type SettingError struct {
	Setting string // as it was given
	Want    string // what would be right
}

func (e *SettingError) Error() string { return fmt.Sprintf("setting %q, want %s", e.Setting, e.Want) }

// ParseNetwork is the network of a name, with settings in the place of its own: a list such as
// "latency=13us,bandwidth=12.5e9,ranks=8,links=32", or nothing. Times are as package time has
// them, rates in bytes per second. The error is a *SettingError, or that there is no such
// network.
func ParseNetwork(name, settings string) (cost.Network, error) {
	known, has := networks[name]
	if !has {
		return cost.Network{}, fmt.Errorf("no network %q is known, only efa", name)
	}
	network := known()
	if settings == "" {
		return network, nil
	}
	var given []string
	for entry := range strings.SplitSeq(settings, ",") {
		name, value, is := strings.Cut(strings.TrimSpace(entry), "=")
		i := slices.IndexFunc(networkSettings, func(s networkSetting) bool { return s.name == name })
		switch {
		case !is || i < 0:
			return network, &SettingError{entry, "NAME=VALUE of " + settingNames()}
		case slices.Contains(given, name):
			return network, &SettingError{entry, name + " only once"}
		}
		given = append(given, name)
		if want := parseSetting(networkSettings[i].of(&network), value); want != "" {
			return network, &SettingError{entry, want}
		}
		var wrong *cost.NetworkError
		if errors.As(network.Check(), &wrong) {
			return network, &SettingError{entry, wrong.Want}
		}
	}
	return network, nil
}

// networkSetting is a field of a network, as the command has it.
type networkSetting struct {
	name string
	of   func(*cost.Network) any
}

var networkSettings = []networkSetting{
	{"latency", func(n *cost.Network) any { return &n.Latency }},
	{"overhead", func(n *cost.Network) any { return &n.Overhead }},
	{"receive", func(n *cost.Network) any { return &n.Receive }},
	{"acknowledge", func(n *cost.Network) any { return &n.Acknowledge }},
	{"bandwidth", func(n *cost.Network) any { return &n.Bandwidth }},
	{"local-latency", func(n *cost.Network) any { return &n.LocalLatency }},
	{"local-overhead", func(n *cost.Network) any { return &n.LocalOverhead }},
	{"local-receive", func(n *cost.Network) any { return &n.LocalReceive }},
	{"local-bandwidth", func(n *cost.Network) any { return &n.LocalBandwidth }},
	{"local-given", func(n *cost.Network) any { return &n.LocalGiven }},
	{"local-alone", func(n *cost.Network) any { return &n.LocalAlone }},
	{"local-direct", func(n *cost.Network) any { return &n.LocalDirect }},
	{"local-by-core", func(n *cost.Network) any { return &n.LocalByCore }},
	{"reduce-rate", func(n *cost.Network) any { return &n.ReduceRate }},
	{"reduce-together", func(n *cost.Network) any { return &n.ReduceTogether }},
	{"copy-rate", func(n *cost.Network) any { return &n.CopyRate }},
	{"step", func(n *cost.Network) any { return &n.Step }},
	{"ranks", func(n *cost.Network) any { return &n.RanksPerNode }},
	{"links", func(n *cost.Network) any { return &n.LinksPerNode }},
	{"cores", func(n *cost.Network) any { return &n.CoresPerNode }},
	{"look", func(n *cost.Network) any { return &n.Look }},
	{"turn", func(n *cost.Network) any { return &n.Turn }},
	{"jitter", func(n *cost.Network) any { return &n.Jitter }},
	{"call", func(n *cost.Network) any { return &n.Call }},
	{"notice", func(n *cost.Network) any { return &n.Notice }},
	{"mapped", func(n *cost.Network) any { return &n.Mapped }},
	{"slot", func(n *cost.Network) any { return &n.Slot }},
	{"telling", func(n *cost.Network) any { return &n.Telling }},
	{"handed", func(n *cost.Network) any { return &n.Handed }},
	{"direct", func(n *cost.Network) any { return &n.Direct }},
	{"direct-moved", func(n *cost.Network) any { return &n.DirectMoved }},
}

func settingNames() string {
	names := make([]string, len(networkSettings))
	for i, s := range networkSettings {
		names[i] = s.name
	}
	return strings.Join(names, ", ")
}

// parseSetting takes in a value, or says what it is to be.
func parseSetting(field any, value string) (want string) {
	var err error
	switch field := field.(type) {
	case *time.Duration:
		want = "a time such as 13us"
		*field, err = time.ParseDuration(value)
	case *float64:
		want = "a number, such as 12.5e9 of bytes per second"
		*field, err = strconv.ParseFloat(value, 64)
	case *int:
		want = "a number"
		*field, err = strconv.Atoi(value)
	case *bool:
		want = "true or false"
		*field, err = strconv.ParseBool(value)
	}
	if err != nil {
		return want
	}
	return ""
}

// assumed is all that a network was taken to have, by the names of the settings.
func assumed(network cost.Network) map[string]string {
	all := make(map[string]string, len(networkSettings))
	for _, s := range networkSettings {
		switch field := s.of(&network).(type) {
		case *time.Duration:
			all[s.name] = field.String()
		case *float64:
			all[s.name] = strconv.FormatFloat(*field, 'g', -1, 64)
		case *int:
			all[s.name] = strconv.Itoa(*field)
		case *bool:
			all[s.name] = strconv.FormatBool(*field)
		}
	}
	return all
}
