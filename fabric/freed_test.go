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
			command := testprocess.Command(t, os.Args[0], "-test.run=^TestCloseWhereFreedMemoryIsOverwritten$", "-test.count=1", "-test.timeout=2m")
			command.Env = append(os.Environ(), child+"=yes", "WEFT_TEST_PROVIDERS="+provider, "MALLOC_PERTURB_=165", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0")
			said, err := command.CombinedOutput()
			require.NoError(t, err, "%s", said)
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
