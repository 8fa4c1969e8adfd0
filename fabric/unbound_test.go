package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// An endpoint that was opened and never enabled can be closed, whatever kind it is.
func TestCloseOfUnboundEndpoint(t *testing.T) {
	for _, provider := range append(testenv.Providers(), "udp", "net") {
		t.Run(provider, func(t *testing.T) {
			_, err := fabric.Discover(fabric.Hints{Provider: provider, Source: sourceOn(provider), MemoryMode: everyMemoryMode})
			testenv.Need(t, provider, err)
			for _, info := range closingInfos(t, provider) {
				_, d := partsOf(t, info)
				for range 3 {
					e, err := d.OpenEndpoint()
					require.NoError(t, err)
					require.NoError(t, e.Close(), "%v", info.Endpoint())
				}
			}
		})
	}
}
