//go:build linux && cgo

package cgo

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestHints gives every hint a value of its own, and looks for it in the fi_info that
// is made of them: by name, and in libfabric's own listing, which knows nothing of
// what the names are here.
func TestHints(t *testing.T) {
	var h Hints
	hints := reflect.ValueOf(&h).Elem()
	for i := range hints.NumField() {
		n := uint64(101 + i)
		switch f := hints.Field(i); f.Kind() {
		case reflect.Uint32, reflect.Uint64:
			f.SetUint(n)
		case reflect.Int32:
			f.SetInt(int64(n))
		case reflect.String:
			f.SetString(fmt.Sprint("name ", n))
		case reflect.Slice:
			f.SetBytes(bytes.Repeat([]byte{byte(n)}, i+1))
		default:
			t.Fatalf("a hint of the kind %v", f.Kind())
		}
	}
	info, code := h.info()
	if code != 0 {
		t.Fatal(code)
	}
	defer info.Free()

	attributes := info.Attributes()
	is := reflect.ValueOf(attributes)
	for i := range hints.NumField() {
		switch name := hints.Type().Field(i).Name; name {
		case "Node", "Service", "Flags": // arguments of fi_getinfo
		default:
			want, got := hints.Field(i).Interface(), is.FieldByName(name)
			if !got.IsValid() || !reflect.DeepEqual(want, got.Interface()) {
				t.Errorf("%s is %v where it was set to %v", name, got, want)
			}
		}
	}
	if !bytes.Equal(h.AuthKey, attributes.DomainAuthKey) {
		t.Errorf("the domain's key is %v", attributes.DomainAuthKey)
	}
	if attributes.TxTrafficClass != h.TrafficClass {
		t.Errorf("the traffic class of sends is %d", attributes.TxTrafficClass)
	}

	listing := info.String()
	for place, want := range map[string]any{
		"fi_tx_attr inject_size":        h.InjectSize,
		"fi_tx_attr size":               h.TxSize,
		"fi_tx_attr iov_limit":          h.TxVectors,
		"fi_tx_attr rma_iov_limit":      h.RMAVectors,
		"fi_rx_attr size":               h.RxSize,
		"fi_rx_attr iov_limit":          h.RxVectors,
		"fi_ep_attr protocol_version":   h.ProtocolVersion,
		"fi_ep_attr max_msg_size":       h.MaxMessage,
		"fi_ep_attr max_order_raw_size": h.MaxOrderRAW,
		"fi_ep_attr max_order_war_size": h.MaxOrderWAR,
		"fi_ep_attr max_order_waw_size": h.MaxOrderWAW,
		"fi_ep_attr mem_tag_format":     fmt.Sprintf("0x%016x", h.TagFormat),
		"fi_ep_attr tx_ctx_cnt":         h.TxContexts,
		"fi_ep_attr rx_ctx_cnt":         h.RxContexts,
		"fi_ep_attr auth_key_size":      len(h.AuthKey),
		"fi_domain_attr name":           h.Domain,
		"fi_domain_attr mr_key_size":    h.KeySize,
		"fi_domain_attr cq_data_size":   h.ImmediateSize,
		"fi_domain_attr mr_iov_limit":   h.RegionVectors,
		"fi_domain_attr max_err_data":   h.MaxErrorData,
		"fi_domain_attr ep_cnt":         h.MaxEndpoints,
		"fi_domain_attr cq_cnt":         h.MaxQueues,
		"fi_domain_attr cntr_cnt":       h.MaxCounters,
		"fi_domain_attr mr_cnt":         h.MaxRegions,
		"fi_domain_attr max_ep_tx_ctx":  h.MaxEndpointTx,
		"fi_domain_attr max_ep_rx_ctx":  h.MaxEndpointRx,
		"fi_domain_attr max_ep_stx_ctx": h.MaxSharedTx,
		"fi_domain_attr max_ep_srx_ctx": h.MaxSharedRx,
		"fi_domain_attr auth_key_size":  len(h.AuthKey),
		"fi_fabric_attr name":           h.Fabric,
		"fi_fabric_attr prov_name":      h.Provider,
		"fi_info src_addrlen":           len(h.Source),
		"fi_info dest_addrlen":          len(h.Destination),
	} {
		if got := listed(listing, place); got != fmt.Sprint(want) {
			t.Errorf("%s is %q where it was set to %v", place, got, want)
		}
	}
	if t.Failed() {
		t.Log(listing)
	}
}

// listed is the value of a member of a struct, "struct member", in a listing.
func listed(listing, place string) string {
	within, member, _ := strings.Cut(place, " ")
	section := ""
	line := regexp.MustCompile(`^\s*(\w+):\s*(.*)$`)
	for text := range strings.Lines(listing) {
		m := line.FindStringSubmatch(strings.TrimRight(text, "\n"))
		switch {
		case m == nil:
		case strings.HasPrefix(m[1], "fi_"):
			section = m[1]
		case section == within && m[1] == member:
			return m[2]
		}
	}
	return ""
}
