package fabric_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// What is logged or printed says what it is.
func TestNames(t *testing.T) {
	for _, test := range []struct {
		value fmt.Stringer
		want  string
	}{
		{fabric.CountSends | fabric.CountRemoteReads, "sends, remote reads"},
		{fabric.CounterEvents(0), "none"},
		{fabric.CountWrites | 1<<60, "writes, 0x1000000000000000"},
		{fabric.ForBarrier | fabric.ForReduceScatter, "FI_BARRIER_SET, FI_REDUCE_SCATTER_SET"},
		{fabric.CollectiveUse(0), "none"},
		{fabric.RegionEvents | fabric.RegionHostMapped, "FI_RMA_EVENT, FI_HMEM_HOST_ALLOC"},
		{fabric.AccessSend | fabric.AccessRemoteWrite, "send, remote write"},
		{fabric.Sending, "FI_TRANSMIT"},
		{fabric.Receiving, "FI_RECV"},
		{fabric.Direction(3), "unknown"},
		{fabric.PeerToPeerEnabled, "FI_HMEM_P2P_ENABLED"},
		{fabric.PeerToPeerDisabled, "FI_HMEM_P2P_DISABLED"},
		{fabric.Refused, "refused"},
		{fabric.Posted, "posted"},
		{fabric.Failed, "failed"},
		{fabric.HugePages2M, "huge pages of 2 MiB"},
		{fabric.OpFlags(0), "none"},
		{fabric.CommitComplete, "FI_COMMIT_COMPLETE"},
		{fabric.MatchComplete | fabric.CommitComplete, "FI_MATCH_COMPLETE, FI_COMMIT_COMPLETE"},
	} {
		require.Equal(t, test.want, test.value.String())
	}
}
