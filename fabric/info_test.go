package fabric_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

func TestSetsAreInWords(t *testing.T) {
	for text, set := range map[string]interface{ String() string }{
		"none":                                 fabric.Capabilities(0),
		"FI_MSG, FI_TAGGED":                    fabric.Messages | fabric.TaggedMessages,
		"FI_RMA, FI_READ, FI_REMOTE_WRITE":     fabric.RemoteMemory | fabric.CanRead | fabric.CanBeWritten,
		"FI_CONTEXT, FI_CONTEXT2":              fabric.OperationContexts,
		"FI_MR_VIRT_ADDR, FI_MR_PROV_KEY":      fabric.VirtualAddresses | fabric.ProviderKeys,
		"FI_ORDER_SAS":                         fabric.SendAfterSend,
		"FI_ORDER_RMA_WAW, FI_ORDER_ATOMIC_RA": fabric.MemoryWriteAfterWrite | fabric.AtomicReadAfterRead,
		"FI_EP_RDM":                            fabric.ReliableDatagram,
		"FI_PROTO_SHM":                         fabric.ProtocolShared,
		"FI_SOCKADDR_IN6":                      fabric.FormatIPv6,
		"FI_THREAD_DOMAIN":                     fabric.ThreadDomain,
		"FI_PROGRESS_MANUAL":                   fabric.ProgressManual,
		"FI_RM_ENABLED":                        fabric.ResourcesEnabled,
		"FI_AV_TABLE":                          fabric.AddressTable,
		"FI_TC_LOW_LATENCY":                    fabric.TrafficLowLatency,
		"DSCP 46":                              fabric.TrafficOfDSCP(46),
		"FI_COMPLETION, FI_DELIVERY_COMPLETE":  fabric.WithCompletion | fabric.DeliveryComplete,
		"unknown":                              fabric.TrafficClass(7),
		"up":                                   fabric.LinkUp,
		"0001:0a:00.2":                         fabric.PCI{Domain: 1, Bus: 10, Function: 2},
	} {
		require.Contains(t, set.String(), text)
	}
	codePoint, ok := fabric.TrafficOfDSCP(46).DSCP()
	require.True(t, ok)
	require.EqualValues(t, 46, codePoint)
	_, ok = fabric.TrafficBulk.DSCP()
	require.False(t, ok)
}

// words must be right while others ask too: libfabric's simple call for it
// has one buffer for all.
func TestWordsFromManyGoroutines(t *testing.T) {
	infos, err := fabric.Discover(fabric.Hints{AttributesOnly: true})
	require.NoError(t, err)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				if text := fabric.SendAfterSend.String(); text != "FI_ORDER_SAS" {
					t.Errorf("the order has become %q", text)
				}
				for _, i := range infos[:min(len(infos), 3)] {
					if !bytes.Contains([]byte(i.String()), []byte(i.Provider())) {
						t.Errorf("%q without its provider", i.String())
					}
				}
			}
		})
	}
	group.Wait()
}

func TestInfoIsNotShared(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		infos, err := fabric.Discover(fabric.Hints{Provider: provider, Endpoint: fabric.ReliableDatagram, Source: sourceOn(provider), MemoryMode: everyMode})
		require.NoError(t, err)
		for _, i := range infos {
			require.Contains(t, i.String(), i.Provider())
			require.Nil(t, i.AuthorizationKey())
			if nic, ok := i.NIC(); ok {
				t.Log(nic)
				require.NotEqual(t, fabric.NIC{}, nic)
			}
			address := i.SourceAddress()
			address[0]++
			require.NotEqual(t, address, i.SourceAddress(), "it is the caller's own copy")
		}
	})
}

// everyMode is what a program can live with that looks at the info.
const everyMode = fabric.LocalRegistration | fabric.VirtualAddresses | fabric.AllocatedMemory | fabric.ProviderKeys

// Each hint rules out what it does not fit, so that it must have arrived.
func TestHintsArrive(t *testing.T) {
	for name, hint := range map[string]func(*fabric.Hints){
		"protocol":          func(h *fabric.Hints) { h.Protocol = fabric.ProtocolEFA },
		"address format":    func(h *fabric.Hints) { h.AddressFormat = fabric.FormatEFA },
		"endpoint":          func(h *fabric.Hints) { h.Endpoint = 77 },
		"send vectors":      func(h *fabric.Hints) { h.SendVectors = 1 << 30 },
		"receive vectors":   func(h *fabric.Hints) { h.ReceiveVectors = 1 << 30 },
		"remote vectors":    func(h *fabric.Hints) { h.RemoteVectors = 1 << 30 },
		"inject size":       func(h *fabric.Hints) { h.InjectSize = 1 << 40 },
		"immediate":         func(h *fabric.Hints) { h.ImmediateSize = 1 << 20 },
		"maximum message":   func(h *fabric.Hints) { h.MaxMessage = ^uint64(0) },
		"capabilities":      func(h *fabric.Hints) { h.Capabilities |= fabric.Collectives },
		"send capabilities": func(h *fabric.Hints) { h.SendCapabilities = fabric.Collectives },
		"receive capabilities": func(h *fabric.Hints) {
			h.ReceiveCapabilities = fabric.Collectives
		},
		"send order":                 func(h *fabric.Hints) { h.SendOrder = 1 << 60 },
		"receive order":              func(h *fabric.Hints) { h.ReceiveOrder = 1 << 60 },
		"domain":                     func(h *fabric.Hints) { h.Domain = "no such device" },
		"fabric":                     func(h *fabric.Hints) { h.Fabric = "no such network" },
		"source":                     func(h *fabric.Hints) { h.Source, h.NumericHost = "no such host", true },
		"send contexts":              func(h *fabric.Hints) { h.SendContexts = 1 << 20 },
		"memory order":               func(h *fabric.Hints) { h.OrderedSizes.WriteAfterWrite = ^uint64(0) },
		"provider":                   func(h *fabric.Hints) { h.Provider = "nonesuch" },
		"service":                    func(h *fabric.Hints) { h.Source, h.Service = "127.0.0.1", "no such service" },
		"endpoints":                  func(h *fabric.Hints) { h.Endpoints = 1 << 40 },
		"queues":                     func(h *fabric.Hints) { h.CompletionQueues = 1 << 40 },
		"counters":                   func(h *fabric.Hints) { h.Counters = 1 << 40 },
		"regions":                    func(h *fabric.Hints) { h.Regions = 1 << 40 },
		"contexts to send of one":    func(h *fabric.Hints) { h.EndpointSendContexts = 1 << 40 },
		"contexts to receive of one": func(h *fabric.Hints) { h.EndpointReceiveContexts = 1 << 40 },
		"shared sends":               func(h *fabric.Hints) { h.SharedSends = 1 << 40 },
		"shared receives":            func(h *fabric.Hints) { h.SharedReceives = 1 << 40 },
		"protocol again":             func(h *fabric.Hints) { h.ProtocolVersion = 1 << 20 },
	} {
		t.Run(name, func(t *testing.T) {
			h := fabric.Hints{
				Provider: "sockets", Endpoint: fabric.ReliableDatagram,
				Capabilities: fabric.Messages | fabric.RemoteMemory, MemoryMode: everyMode,
			}
			_, err := fabric.Discover(h)
			testenv.Need(t, "sockets", err)
			hint(&h)
			infos, err := fabric.Discover(h)
			require.Error(t, err, "%d found", len(infos))
			var e *fabric.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "fi_getinfo", e.Op)
		})
	}
}

func TestHintsThatCannotBeRight(t *testing.T) {
	_, err := fabric.Discover(fabric.Hints{Source: "127.0.0.1", Destination: "127.0.0.1"})
	require.ErrorIs(t, err, fabric.ErrInvalid)
	require.ErrorContains(t, err, "cannot both be given by name")
	_, err = fabric.Discover(fabric.Hints{AuthorizationKey: make([]byte, 5000)})
	require.ErrorIs(t, err, fabric.ErrInvalid)
	for _, h := range []fabric.Hints{
		{ReceiveFlags: fabric.MultiReceive},
		{ReceiveFlags: fabric.DeliveryComplete},
		{SendFlags: fabric.ToMulticast},
		{SendFlags: fabric.DeliveryComplete | fabric.Immediate},
	} {
		_, err = fabric.Discover(h)
		require.ErrorIs(t, err, fabric.ErrInvalid, "%v %v", h.SendFlags, h.ReceiveFlags)
	}
	_, err = fabric.Discover(fabric.Hints{Provider: "tcp", Mode: fabric.AsyncVectors})
	require.ErrorIs(t, err, fabric.ErrNotSupported)
	_, err = fabric.Discover(fabric.Hints{Provider: "tcp", Capabilities: fabric.Messages | fabric.ExactDirectedReceive})
	require.Error(t, err)
	if fabric.HeaderVersion().Major < 2 {
		require.ErrorIs(t, err, fabric.ErrNotSupported, "where the bit meant something else")
	}
}

func TestDestination(t *testing.T) {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "sockets", Endpoint: fabric.Connected, Capabilities: fabric.Messages, MemoryMode: everyMode,
		Destination: "127.0.0.1", Service: "4711", NumericHost: true,
	})
	testenv.Need(t, "sockets", err)
	address := infos[0].DestinationAddress()
	require.Len(t, address, 16)
	require.Equal(t, []byte{0x12, 0x67, 127, 0, 0, 1}, address[2:8], "port and host")
	// The same by address.
	again, err := fabric.Discover(fabric.Hints{
		Provider: "sockets", Endpoint: fabric.Connected, Capabilities: fabric.Messages, MemoryMode: everyMode,
		AddressFormat: fabric.FormatIPv4, DestinationAddress: address, SourceAddress: infos[0].SourceAddress(),
	})
	require.NoError(t, err)
	require.Equal(t, address, again[0].DestinationAddress())
}

// The efa provider changes memory that its threads share when it is asked for collectives.
func TestDiscoverFromManyGoroutines(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		if provider == "efa" {
			// Without its name.
			provider = "^sockets"
		}
		hints := fabric.Hints{
			Provider: provider, Endpoint: fabric.ReliableDatagram, MemoryMode: everyMode,
			Capabilities: fabric.TaggedMessages | fabric.Collectives,
		}
		infos, asked := fabric.Discover(hints)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 100 {
					others, err := fabric.Discover(hints)
					assert.Equal(t, asked, err)
					assert.Len(t, others, len(infos))
				}
			})
		}
		all.Wait()
	})
}

// A text ends where C sees its end, and what is behind is not left out in silence.
func TestNamesWithZeroBytes(t *testing.T) {
	const text = "lo\x00evil"
	for _, h := range []fabric.Hints{
		{Provider: "sockets\x00evil"}, {Fabric: text}, {Domain: text}, {Source: text}, {Destination: text}, {Source: "127.0.0.1", Service: "1\x002"},
	} {
		_, err := fabric.Discover(h)
		require.ErrorIs(t, err, fabric.ErrInvalid)
		require.ErrorContains(t, err, "zero byte")
	}
	each(t, func(t *testing.T, provider string) {
		_, d := partsOf(t, strewInfo(t, provider))
		_, err := d.OpenAddressVectorConfig(fabric.AddressVectorConfig{Name: text})
		require.ErrorIs(t, err, fabric.ErrInvalid)
		require.ErrorContains(t, err, "zero byte")
	})
}

// What is open of one provider takes no info of another: sockets would, and shm ends the
// process.
func TestInfoOfAnotherProvider(t *testing.T) {
	var all []*fabric.Info
	for _, provider := range append(testenv.Providers(), "udp") {
		for _, kind := range []fabric.EndpointType{fabric.Connected, fabric.ReliableDatagram, fabric.Datagram} {
			infos, err := fabric.Discover(fabric.Hints{Provider: provider, Endpoint: kind, MemoryMode: everyMemoryMode, Source: sourceOn(provider)})
			if err == nil {
				all = append(all, infos[0])
			}
		}
	}
	for _, own := range all {
		t.Run(own.Provider()+" "+own.Endpoint().String(), func(t *testing.T) {
			f, d := partsOf(t, own)
			q := queueOf(t, d, 8)
			for _, other := range append(all, nil) {
				if other != nil && other.Provider() == own.Provider() {
					continue
				}
				_, err := f.OpenDomain(other)
				require.ErrorIs(t, err, fabric.ErrInvalid)
				_, err = f.OpenPassiveEndpoint(other)
				require.ErrorIs(t, err, fabric.ErrInvalid)
				_, err = d.OpenEndpointFor(other)
				require.ErrorIs(t, err, fabric.ErrInvalid)
				_, err = d.OpenScalableEndpoint(other)
				require.ErrorIs(t, err, fabric.ErrInvalid)
				_, err = d.OpenSharedSend(other)
				require.ErrorIs(t, err, fabric.ErrInvalid)
				_, err = d.OpenSharedReceive(other, q)
				require.ErrorIs(t, err, fabric.ErrInvalid)
			}
		})
	}
}

// An info with more contexts than an endpoint has is refused where it is used.
func TestTooManyContexts(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, _ := stations(t, provider, fabric.Messages)
		for _, n := range [][2]uint64{{1 << 40, 1}, {1, 1 << 40}, {a.info.Limits().EndpointSendContexts + 2, 1}} {
			many, err := a.info.WithContexts(n[0], n[1])
			require.NoError(t, err)
			_, err = a.domain.OpenEndpointFor(many)
			require.ErrorIs(t, err, fabric.ErrInvalid)
			_, err = a.domain.OpenScalableEndpoint(many)
			require.ErrorIs(t, err, fabric.ErrInvalid)
		}
	})
}
