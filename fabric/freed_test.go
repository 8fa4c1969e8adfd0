package fabric_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testprocess"
)

// Nothing looks into memory after it was freed: the C library writes something else there at
// once, as another thread may that gets it.
func TestCloseWhereFreedMemoryIsOverwritten(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const child = "WEFT_TEST_FREED"
		if os.Getenv(child) == "" {
			runWithFreedOverwritten(t, "TestCloseWhereFreedMemoryIsOverwritten", provider, child+"=yes")
			return
		}
		for range 3 {
			a, b := stations(t, provider, fabric.Messages|fabric.RemoteMemory)
			require.NoError(t, a.goesOn(t, b))
			// And one that is never enabled.
			endpointOf(t, a.domain)
		}
	})
}

// Nor is that of a connection of ofi_rxm, by which libfabric answers after it has closed it,
// whether one buffer is for the messages of all connections or for those of one.
func TestPeerGoesOnWhereFreedMemoryIsOverwritten(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		runWithFreedOverwritten(t, "TestPeerEndsAmidUndertakings$/"+provider+"$/going_on", provider)
		if provider == "tcp" {
			runWithFreedOverwritten(t, "TestPeerEndsAmidUndertakings$/"+provider+"$/going_on", provider, "FI_OFI_RXM_USE_SRX=0")
		}
	})
}

// runWithFreedOverwritten runs a test in a process of its own.
func runWithFreedOverwritten(t *testing.T, test, provider string, more ...string) {
	command := testprocess.Command(t, os.Args[0], "-test.run=^"+test+"$", "-test.count=1", "-test.timeout=2m")
	command.Env = append(os.Environ(), "WEFT_TEST_PROVIDERS="+provider, "MALLOC_PERTURB_=165", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0")
	command.Env = append(command.Env, more...)
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s", said)
}
