package fabric_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// A process that a program starts has none of its descriptors: one that did would keep ports taken
// that were closed here, and peers from seeing that the program has ended.
func TestStartedProcessesInheritNothing(t *testing.T) {
	for _, provider := range append(testenv.Providers(), "udp", "net") {
		t.Run(provider, func(t *testing.T) {
			_, err := fabric.Discover(fabric.Hints{Provider: provider, Source: sourceOn(provider), MemoryMode: everyMemoryMode})
			testenv.Need(t, provider, err)
			before := inherited(t)
			for _, info := range closingInfos(t, provider) {
				if info.Endpoint() == fabric.Connected {
					x := openOffice(t, info)
					x.listen(t)
					x.couple(t)
					continue
				}
				c := openCorner(t, info)
				a, known := c.endpoint(t, info, fabric.Bindings{Events: c.events})
				b, _ := c.endpoint(t, info, fabric.Bindings{Events: c.events})
				if info.Endpoint() == fabric.ReliableDatagram { // which connect with the first message
					exchangeOne(t, a, b, insert(t, known, b.e))
					openCounter(t, c.domain)
				}
			}
			for _, now := range inherited(t) {
				require.Contains(t, before, now)
			}
		})
	}
}

// inherited are the descriptors of a process that is started now, with what they are of.
func inherited(t *testing.T) (all []string) {
	t.Helper()
	text, err := testprocess.Command(t, "find", "/proc/self/fd", "-type", "l", "-printf", "%f %l\n").Output()
	require.NoError(t, err)
	for descriptor := range strings.Lines(string(text)) {
		number, file, _ := strings.Cut(descriptor, " ")
		if !slices.Contains([]string{"0", "1", "2"}, number) && !strings.HasPrefix(file, "/proc/") { // where it looks
			all = append(all, descriptor)
		}
	}
	return all
}
