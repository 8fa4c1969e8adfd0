package fabric_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// What an info says, in Go's terms, is what libfabric lists: nothing is mixed up with
// its neighbour, and no unit is another.
func TestInfoIsAsListed(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		found := 0
		for _, kind := range []fabric.EndpointType{fabric.ReliableDatagram, fabric.Connected, fabric.Datagram} {
			infos, err := fabric.Discover(fabric.Hints{
				Provider: provider, Endpoint: kind, Source: sourceOn(provider),
				MemoryMode: everyMemoryMode, Mode: fabric.MessagePrefix,
			})
			if err != nil {
				require.ErrorIs(t, err, fabric.ErrNotFound)
				continue
			}
			for _, i := range infos {
				found++
				requireListed(t, i)
			}
		}
		require.NotZero(t, found)
	})
}

func requireListed(t *testing.T, i *fabric.Info) {
	t.Helper()
	listing := listingOf(i.String())
	set := func(s fmt.Stringer, bits uint64) string {
		if bits == 0 {
			return "[  ]"
		}
		return "[ " + s.String() + " ]"
	}
	var missing []string
	send, receive, limits, orders := i.Send(), i.Receive(), i.Limits(), i.OrderedSizes()
	for place, want := range map[string]any{
		"fi_info caps":                    set(i.Capabilities(), uint64(i.Capabilities())),
		"fi_info mode":                    set(i.Mode(), uint64(i.Mode())),
		"fi_info addr_format":             i.AddressFormat(),
		"fi_info src_addrlen":             len(i.SourceAddress()),
		"fi_info dest_addrlen":            len(i.DestinationAddress()),
		"fi_tx_attr caps":                 set(send.Capabilities, uint64(send.Capabilities)),
		"fi_tx_attr mode":                 set(send.Mode, uint64(send.Mode)),
		"fi_tx_attr op_flags":             set(send.Flags, uint64(send.Flags)),
		"fi_tx_attr inject_size":          send.InjectSize,
		"fi_tx_attr size":                 send.Queue,
		"fi_tx_attr iov_limit":            send.Vectors,
		"fi_tx_attr rma_iov_limit":        send.RemoteVectors,
		"fi_tx_attr tclass":               fmt.Sprintf("0x%x", uint32(send.TrafficClass)),
		"fi_rx_attr caps":                 set(receive.Capabilities, uint64(receive.Capabilities)),
		"fi_rx_attr mode":                 set(receive.Mode, uint64(receive.Mode)),
		"fi_rx_attr op_flags":             set(receive.Flags, uint64(receive.Flags)),
		"fi_rx_attr size":                 receive.Queue,
		"fi_ep_attr type":                 i.Endpoint(),
		"fi_ep_attr protocol":             i.Protocol(),
		"fi_ep_attr protocol_version":     i.ProtocolVersion(),
		"fi_ep_attr max_msg_size":         i.MaxMessage(),
		"fi_ep_attr msg_prefix_size":      i.PrefixSize(),
		"fi_ep_attr max_order_raw_size":   orders.ReadAfterWrite,
		"fi_ep_attr max_order_war_size":   orders.WriteAfterRead,
		"fi_ep_attr max_order_waw_size":   orders.WriteAfterWrite,
		"fi_ep_attr mem_tag_format":       fmt.Sprintf("0x%016x", i.TagBits()),
		"fi_ep_attr tx_ctx_cnt":           i.SendContexts(),
		"fi_ep_attr rx_ctx_cnt":           i.ReceiveContexts(),
		"fi_domain_attr name":             i.Domain(),
		"fi_domain_attr threading":        i.Threading(),
		"fi_domain_attr control_progress": i.ControlProgress(),
		"fi_domain_attr data_progress":    i.Progress(),
		"fi_domain_attr resource_mgmt":    i.ResourceManagement(),
		"fi_domain_attr mr_mode":          set(i.MemoryMode(), uint64(i.MemoryMode())),
		"fi_domain_attr mr_key_size":      i.KeySize(),
		"fi_domain_attr cq_data_size":     i.ImmediateSize(),
		"fi_domain_attr cq_cnt":           limits.CompletionQueues,
		"fi_domain_attr ep_cnt":           limits.Endpoints,
		"fi_domain_attr tx_ctx_cnt":       limits.SendContexts,
		"fi_domain_attr rx_ctx_cnt":       limits.ReceiveContexts,
		"fi_domain_attr max_ep_tx_ctx":    limits.EndpointSendContexts,
		"fi_domain_attr max_ep_rx_ctx":    limits.EndpointReceiveContexts,
		"fi_domain_attr max_ep_stx_ctx":   limits.SharedSends,
		"fi_domain_attr max_ep_srx_ctx":   limits.SharedReceives,
		"fi_domain_attr cntr_cnt":         limits.Counters,
		"fi_domain_attr mr_iov_limit":     limits.RegionVectors,
		"fi_domain_attr caps":             set(limits.Capabilities, uint64(limits.Capabilities)),
		"fi_domain_attr mode":             set(limits.Mode, uint64(limits.Mode)),
		"fi_domain_attr max_err_data":     limits.ErrorData,
		"fi_domain_attr mr_cnt":           limits.Regions,
		"fi_domain_attr tclass":           fmt.Sprintf("0x%x", uint32(i.TrafficClass())),
		"fi_fabric_attr name":             i.Fabric(),
		"fi_fabric_attr prov_name":        i.Provider(),
		"fi_fabric_attr prov_version":     i.ProviderVersion(),
		"fi_fabric_attr api_version":      i.APIVersion(),
	} {
		value, listed := listing[place]
		if !listed {
			missing = append(missing, place)
			continue
		}
		require.Equal(t, value, fmt.Sprint(want), place)
	}
	// 2.x lists one progress in place of two.
	require.LessOrEqual(t, len(missing), 2, missing)
	nic, ok := i.NIC()
	_, has := listing["fi_device_attr name"]
	require.Equal(t, has, ok, "a network interface")
	if !ok {
		return
	}
	require.NotNil(t, nic.PCI)
	for place, want := range map[string]any{
		"fi_device_attr name":           nic.Name,
		"fi_device_attr device_id":      nic.ID,
		"fi_device_attr device_version": nic.Version,
		"fi_device_attr vendor_id":      nic.Vendor,
		"fi_device_attr driver":         nic.Driver,
		"fi_device_attr firmware":       nic.Firmware,
		"fi_pci_attr domain_id":         nic.PCI.Domain,
		"fi_pci_attr bus_id":            nic.PCI.Bus,
		"fi_pci_attr device_id":         nic.PCI.Device,
		"fi_pci_attr function_id":       nic.PCI.Function,
		"fi_link_attr address":          nic.Link.Address,
		"fi_link_attr mtu":              nic.Link.MTU,
		"fi_link_attr speed":            nic.Link.Speed,
		"fi_link_attr state":            "FI_LINK_" + strings.ToUpper(nic.Link.State.String()),
		"fi_link_attr network_type":     nic.Link.Network,
	} {
		require.Equal(t, listing[place], fmt.Sprint(want), place)
	}
}

// listingOf has the values of a listing by their places, "struct member".
func listingOf(listing string) map[string]string {
	values, section := make(map[string]string), ""
	line := regexp.MustCompile(`^\s*(\w+):\s*(.*)$`)
	for text := range strings.Lines(listing) {
		switch m := line.FindStringSubmatch(strings.TrimRight(text, "\n")); {
		case m == nil:
		case strings.HasPrefix(m[1], "fi_"):
			section = m[1]
		default:
			values[section+" "+m[1]] = m[2]
		}
	}
	return values
}

// The network interface of a device is told; what is software alone has none.
func TestNIC(t *testing.T) {
	infos, err := fabric.Discover(fabric.Hints{Provider: "sockets", Endpoint: fabric.ReliableDatagram, Source: "127.0.0.1"})
	testenv.Need(t, "sockets", err)
	nic, ok := infos[0].NIC()
	require.False(t, ok)
	require.Equal(t, fabric.NIC{}, nic)
}
