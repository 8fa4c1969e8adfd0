package fabric_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

func TestVariables(t *testing.T) {
	variables, err := fabric.Variables()
	require.NoError(t, err)
	names := make([]string, len(variables))
	for i, v := range variables {
		names[i] = v.Name
		require.NotEqual(t, "unknown", v.Type.String(), v.Name)
	}
	require.True(t, slices.IsSorted(names))
	require.Subset(t, names, []string{"FI_PROVIDER", "FI_LOG_LEVEL", "FI_UNIVERSE_SIZE"})
	at := slices.Index(names, "FI_UNIVERSE_SIZE")
	require.NotEmpty(t, variables[at].Help)
	require.False(t, variables[at].Set && variables[at].Value == "")
}

// The provider would take memory that Go mapped anew for what was there before. Children
// of the process have a cache, if they are no programs of weft's.
func TestRegistrationsAreNotCached(t *testing.T) {
	const name = "FI_EFA_MR_CACHE_ENABLE"
	variables, err := fabric.Variables()
	require.NoError(t, err)
	at := slices.IndexFunc(variables, func(v fabric.Variable) bool { return v.Name == name })
	if at < 0 {
		require.NotContains(t, testenv.Providers(), "efa", "a provider without the variable")
		return
	}
	inherited, decided := os.LookupEnv(name)
	_, monitored := os.LookupEnv("FI_MR_CACHE_MONITOR")
	switch v := variables[at]; {
	case decided:
		require.Equal(t, inherited, v.Value)
	case monitored:
		require.False(t, v.Set)
	default:
		require.True(t, v.Set)
		require.Equal(t, "0", v.Value)
	}
}

// A process that has set nothing has tcp save no messages, and one that has decides. What
// it has not set it does not hand on to processes that it starts.
func TestMessagesAreNotSaved(t *testing.T) {
	const name, child = "FI_TCP_MAX_SAVED", "WEFT_TEST_SAVED"
	if os.Getenv(child) != "" {
		before := os.Environ()
		variables, err := fabric.Variables()
		require.NoError(t, err)
		require.True(t, slices.Equal(before, os.Environ()))
		value := ""
		if i := slices.IndexFunc(variables, func(v fabric.Variable) bool { return v.Name == name }); i >= 0 {
			value = variables[i].Value
		} else {
			require.Less(t, fabric.LibraryVersion().Major, 2)
			value = os.Getenv(name)
		}
		fmt.Println("saved:" + value)
		return
	}
	others := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, name+"=") })
	byItself := "saved:0\n"
	if v := fabric.LibraryVersion(); v.Major == 1 && v.Minor < 18 {
		byItself = "saved:\n" // It has no such endpoints.
	}
	for given, want := range map[string]string{"": byItself, name + "=7": "saved:7\n"} {
		command := testprocess.Command(t, os.Args[0], "-test.run=^TestMessagesAreNotSaved$", "-test.count=1")
		command.Env = append(slices.Clone(others), child+"=yes")
		if given != "" {
			command.Env = append(command.Env, given)
		}
		said, err := command.Output()
		require.NoError(t, err, "%s", said)
		require.Contains(t, string(said), want)
	}
}

// So a message that nobody receives holds up those behind it, and is not in a list.
func TestMessagesWaitInTheirConnection(t *testing.T) {
	if !slices.Contains(testenv.Providers(), "tcp") || fabric.LibraryVersion().Major < 2 || os.Getenv("FI_TCP_MAX_SAVED") != "" {
		return // no such endpoints, or others decide
	}
	own, err := fabric.Choose(fabric.Preference{Providers: []string{"tcp;"}, Require: true, Source: "127.0.0.1"})
	require.NoError(t, err)
	f, d := partsOf(t, own.Info)
	a, b, c := openStation(t, f, d, own.Info), openStation(t, f, d, own.Info), openStation(t, f, d, own.Info)
	a.peer, c.peer = a.insert(t, b), c.insert(t, b)
	b.insert(t, a) // of strangers there is no list
	for tag := range uint64(2) {
		a.must(t, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: tag, Buf: make([]byte, 8)})
		require.NoError(t, a.await(t, b).Err)
	}
	receive := func(tag uint64) {
		b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: tag, Buf: make([]byte, 8)})
	}
	receive(1)
	// By the time that this one is here, so are those before it.
	receive(2)
	c.must(t, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: c.peer, Tag: 2, Buf: make([]byte, 8)})
	require.NoError(t, c.await(t, b).Err)
	var got []uint64
	got = append(got, b.await(t, c).Tag)
	receive(0)
	got = append(got, b.await(t, a).Tag, b.await(t, a).Tag)
	require.Equal(t, []uint64{2, 0, 1}, got)
}
