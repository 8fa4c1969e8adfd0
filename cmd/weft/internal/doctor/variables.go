package doctor

import (
	"maps"
	"slices"
	"strings"
)

// filters says whether FI_PROVIDER keeps libfabric from a provider. It is a list, or
// the negation of one; an empty one has none.
func (x *examination) filters(provider string) bool {
	value, set := x.environ["FI_PROVIDER"]
	if !set {
		return false
	}
	list, negated := strings.CutPrefix(value, "^")
	listed := slices.ContainsFunc(strings.Split(list, ","), func(entry string) bool {
		// With its layers, such as efa;ofi_rxd.
		return slices.Contains(strings.Split(strings.ToLower(entry), ";"), provider)
	})
	return listed == negated
}

// Settings that newer efa providers abort at, and those that protect memory against
// fork.
const (
	fatalVariables = "FI_EFA_MTU_SIZE FI_EFA_TX_IOV_LIMIT FI_EFA_RX_IOV_LIMIT"
	forkVariables  = "RDMAV_FORK_SAFE IBV_FORK_SAFE FI_EFA_FORK_SAFE"
)

func (x *examination) lookAtVariables() {
	before := len(x.findings)
	looked := "/" + x.ofProcess("environ")
	if x.filters("efa") {
		x.find(Filtered, looked, "FI_PROVIDER="+x.environ["FI_PROVIDER"]+x.misspelt())
	}
	x.lookAtDeviceFilter(looked)
	for name := range strings.FieldsSeq(fatalVariables) {
		if value, set := x.environ[name]; set {
			x.find(FatalVariable, looked, name+"="+value)
			x.gradeIf(x.Library.Died != "", Problem)
		}
	}
	for name := range strings.FieldsSeq(forkVariables) {
		if value := x.environ[name]; value != "" && value != "0" {
			x.find(ForkSafe, looked, name+"="+value)
		}
	}
	if x.environ["FI_EFA_USE_DEVICE_RDMA"] == "1" && slices.ContainsFunc(x.functions, func(f function) bool { return f.id == "0xefa0" }) {
		x.find(ForcedRDMA, looked, "FI_EFA_USE_DEVICE_RDMA=1, and a device 0xefa0")
	}
	if value := x.environ["FI_PROVIDER_PATH"]; value != "" {
		x.find(ProviderPath, looked, "FI_PROVIDER_PATH="+value)
	}
	for _, name := range slices.Sorted(maps.Keys(x.environ)) {
		if x.unknown(name) {
			x.find(UnknownName, looked, name+"="+x.environ[name])
		}
	}
	if len(x.findings) == before {
		x.fine(looked, "no setting keeps libfabric from using EFA")
	}
}

// misspelt says which names of FI_PROVIDER libfabric does not have. While the variable
// is set it does not list the others, so only what was asked for and is not there tells.
func (x *examination) misspelt() string {
	list, negated := strings.CutPrefix(x.environ["FI_PROVIDER"], "^")
	var none []string
	for entry := range strings.SplitSeq(list, ",") {
		name, _, _ := strings.Cut(entry, ";")
		if name != "" && !slices.Contains(x.Library.Providers, strings.ToLower(name)) {
			none = append(none, name)
		}
	}
	if negated || len(none) == 0 || x.Process != "self" {
		return ""
	}
	return "; libfabric has no " + strings.Join(none, ", ")
}

func (x *examination) lookAtDeviceFilter(looked string) {
	value, set := x.environ["FI_EFA_IFACE"]
	// Providers before 2.x do not look at it.
	heeded := x.Process != "self" || len(x.Library.Devices) == 0
	if !set || value == "all" || len(x.devices) == 0 || !heeded {
		return
	}
	var here []string
	for _, d := range x.devices {
		here = append(here, d.name)
	}
	for name := range strings.SplitSeq(value, ",") {
		if slices.Contains(here, name) {
			return
		}
	}
	x.find(FilteredDevices, looked, "FI_EFA_IFACE="+value+"; there are "+strings.Join(here, ", "))
}

// unknown says whether a setting is none of libfabric's. What providers define that
// found no device here is not in its list.
func (x *examination) unknown(name string) bool {
	if !strings.HasPrefix(name, "FI_") || len(x.Library.Variables) == 0 || slices.Contains(x.Library.Variables, name) {
		return false
	}
	for _, known := range []string{"FI_PROVIDER", "FI_PROVIDER_PATH", "FI_LOG_LEVEL", "FI_LOG_PROV", "FI_LOG_SUBSYS", "FI_LOG_INTERVAL"} {
		if name == known {
			return false
		}
	}
	provider, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(name, "FI_")), "_")
	ofAbsent := []string{"efa", "verbs", "psm2", "psm3", "opx", "cxi", "ucx", "usnic", "gni", "bgq", "lnx"}
	return !slices.Contains(ofAbsent, provider) || slices.Contains(x.Library.Providers, provider) && provider != "efa"
}
