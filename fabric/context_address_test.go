package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func TestContextAddress(t *testing.T) {
	require.Equal(t, fabric.Address(3)<<62|5, fabric.Address(5).Context(3, 2))
	require.Equal(t, fabric.Address(5), fabric.Address(5).Context(0, 2))
	for _, wrong := range []fabric.Address{
		fabric.Address(5).Context(4, 2), fabric.Address(5).Context(-1, 2), fabric.Address(5).Context(0, 0),
		fabric.Address(5).Context(0, 64), fabric.AddressAny.Context(1, 2),
	} {
		require.Equal(t, fabric.AddressAny, wrong)
	}
}
