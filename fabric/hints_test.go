package fabric

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/cgo"
)

// rawNames are what members of Hints are called in libfabric's terms, where they are
// called otherwise.
var rawNames = map[string]string{
	"Destination": "Node", "SourceAddress": "Source", "DestinationAddress": "Destination",
	"Endpoint": "EndpointType", "MemoryMode": "MRMode", "Progress": "DataProgress", "AddressVector": "AVType",
	"Capabilities": "Caps", "SendCapabilities": "TxCaps", "ReceiveCapabilities": "RxCaps", "DomainCapabilities": "DomainCaps",
	"SendOrder": "TxOrder", "ReceiveOrder": "RxOrder",
	"SendCompletions": "TxCompletionOrder", "ReceiveCompletions": "RxCompletionOrder",
	"SendFlags": "TxFlags", "ReceiveFlags": "RxFlags", "SendQueue": "TxSize", "ReceiveQueue": "RxSize",
	"SendVectors": "TxVectors", "ReceiveVectors": "RxVectors", "RemoteVectors": "RMAVectors",
	"SendContexts": "TxContexts", "ReceiveContexts": "RxContexts", "AuthorizationKey": "AuthKey",
	"ReadAfterWrite": "MaxOrderRAW", "WriteAfterRead": "MaxOrderWAR", "WriteAfterWrite": "MaxOrderWAW",
	"Endpoints": "MaxEndpoints", "CompletionQueues": "MaxQueues", "Counters": "MaxCounters", "Regions": "MaxRegions",
	"EndpointSendContexts": "MaxEndpointTx", "EndpointReceiveContexts": "MaxEndpointRx",
	"SharedSends": "MaxSharedTx", "SharedReceives": "MaxSharedRx",
}

// Every hint that has a value, of its own, is found under its name in libfabric's
// terms, and every member there is some hint's.
func TestRawHints(t *testing.T) {
	var h Hints
	want := make(map[string]string)
	distinguish(t, reflect.ValueOf(&h).Elem(), want)
	h.Source = "" // Destination is the one given by name
	want["Mode"] = fmt.Sprintf("%d", h.Mode|OperationContexts)
	want["Flags"] = "0"

	raw := h.raw()
	got := make(map[string]string)
	for i, v := 0, reflect.ValueOf(raw); i < v.NumField(); i++ {
		got[v.Type().Field(i).Name] = plain(v.Field(i))
	}
	require.Equal(t, want, got)

	h = Hints{AttributesOnly: true, NumericHost: true, OrderedSends: true, Source: "here"}
	require.Equal(t, cgo.Hints{
		Flags: cgo.FlagAttrOnly | cgo.FlagNumericHost | cgo.FlagSource, Node: "here",
		TxOrder: cgo.OrderSAS, RxOrder: cgo.OrderSAS,
	}, h.raw())
	h = Hints{OneThread: true}
	require.Equal(t, cgo.Hints{
		Mode: uint64(OperationContexts), Threading: cgo.ThreadDomain,
		AVType: cgo.AVTable, ResourceManagement: cgo.ResourcesEnabled,
	}, h.raw())
}

// distinguish sets each member of a struct that is no bool to a value of its own,
// and notes these by their names in libfabric's terms.
func distinguish(t *testing.T, v reflect.Value, noted map[string]string) {
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		n := 101 + len(noted)
		switch f.Kind() {
		case reflect.Bool:
			continue
		case reflect.Struct:
			distinguish(t, f, noted)
			continue
		case reflect.Uint32, reflect.Uint64:
			f.SetUint(uint64(n))
		case reflect.Int32:
			f.SetInt(int64(n))
		case reflect.String:
			f.SetString(fmt.Sprint("name ", n))
		case reflect.Slice:
			f.SetBytes([]byte{byte(n)})
		default:
			t.Fatalf("%s is of the kind %v", name, f.Kind())
		}
		if raw, ok := rawNames[name]; ok {
			name = raw
		}
		noted[name] = plain(f)
	}
}

// plain is a value without its type's words for it.
func plain(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Uint32, reflect.Uint64:
		return fmt.Sprint(v.Uint())
	case reflect.Int32:
		return fmt.Sprint(v.Int())
	default:
		return fmt.Sprint(v.Interface())
	}
}
