package fabrictest

import "github.com/weft-go/weft/fabric"

var discoveryCases = []named{
	{"discover", discover},
	{"attributes", attributes},
	{"hints rule out", hintsRuleOut},
}

// What is found is what was asked for.
func discover(t *trial) {
	h := t.hints(fabric.ReliableDatagram, fabric.TaggedMessages)
	t.discover(h)
	infos, err := fabric.Discover(h)
	noError(t, err)
	for _, i := range infos {
		equal(t, fabric.ReliableDatagram, i.Endpoint())
		isTrue(t, i.Capabilities()&fabric.TaggedMessages != 0, "%v", i)
		isTrue(t, i.MaxMessage() > 0, "%v", i)
		zero(t, i.MemoryMode()&^everyMemoryMode, "what was not offered must not be asked for")
	}
}

// What a provider says of itself fits together.
func attributes(t *trial) {
	h := t.hints(fabric.ReliableDatagram, remoteAccess)
	t.discover(h)
	infos, err := fabric.Discover(h)
	noError(t, err)
	for _, i := range infos {
		send, receive, limits := i.Send(), i.Receive(), i.Limits()
		equal(t, i.InjectSize(), send.InjectSize)
		equal(t, i.SendQueue(), send.Queue)
		equal(t, i.ReceiveQueue(), receive.Queue)
		isTrue(t, send.Order&receive.Order&fabric.SendAfterSend != 0, "the order that was asked for")
		isTrue(t, i.Capabilities()&fabric.CanWrite != 0, "what RemoteMemory includes")
		isTrue(t, send.Capabilities&fabric.CanSend != 0)
		isTrue(t, receive.Capabilities&fabric.CanReceive != 0)
		zero(t, i.Mode()&^fabric.OperationContexts)
		equal(t, fabric.ResourcesEnabled, i.ResourceManagement())
		for name, n := range map[string]uint64{
			"vectors of sends": send.Vectors, "of receives": receive.Vectors, "of remote memory": send.RemoteVectors,
			"threading": uint64(i.Threading()), "control progress": uint64(i.ControlProgress()), "protocol": uint64(i.Protocol()),
			"address format": uint64(i.AddressFormat()), "source address": uint64(len(i.SourceAddress())),
			"key size": i.KeySize(), "immediate size": uint64(i.ImmediateSize()),
			"send contexts": i.SendContexts(), "receive contexts": i.ReceiveContexts(),
			"completion queues": limits.CompletionQueues, "endpoints": limits.Endpoints, "vectors of regions": limits.RegionVectors,
		} {
			isTrue(t, n > 0, "%s of %v", name, i)
		}
		equal(t, 0, len(i.AuthorizationKey()))
		isTrue(t, i.APIVersion().Minor+100*i.APIVersion().Major >= 117, "API %v", i.APIVersion())
	}
}

// What the provider does not have is not found.
func hintsRuleOut(t *trial) {
	h := t.hints(fabric.ReliableDatagram, fabric.TaggedMessages)
	t.discover(h)
	for name, change := range map[string]func(*fabric.Hints){
		"inject of a TiB": func(h *fabric.Hints) { h.InjectSize = 1 << 40 },
		"vectors":         func(h *fabric.Hints) { h.SendVectors = 1 << 30 },
		"domain":          func(h *fabric.Hints) { h.Domain = "no such device" },
		"fabric":          func(h *fabric.Hints) { h.Fabric = "no such network" },
		"endpoint type":   func(h *fabric.Hints) { h.Endpoint = 77 },
	} {
		wrong := h
		change(&wrong)
		_, err := fabric.Discover(wrong)
		errorIs(t, err, fabric.ErrNotFound, name)
	}
}
