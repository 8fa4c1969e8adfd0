package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// What endpoints are in, and what they work with. Each is closed at the end of the
// test, the last first.

func partsOf(t *testing.T, info *fabric.Info) (*fabric.Fabric, *fabric.Domain) {
	t.Helper()
	f, err := info.OpenFabric()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	d, err := f.OpenDomain(info)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return f, d
}

func eventsOf(t *testing.T, f *fabric.Fabric) *fabric.EventQueue {
	t.Helper()
	q, err := f.OpenEventQueue()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

func queueOf(t *testing.T, d *fabric.Domain, size int) *fabric.CompletionQueue {
	t.Helper()
	q, err := d.OpenCompletionQueue(size)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

func vectorOf(t *testing.T, d *fabric.Domain) *fabric.AddressVector {
	t.Helper()
	v, err := d.OpenAddressVector()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, v.Close()) })
	return v
}

// endpointOf opens an endpoint that is still to be enabled.
func endpointOf(t *testing.T, d *fabric.Domain) *fabric.Endpoint {
	t.Helper()
	e, err := d.OpenEndpoint()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}
