package fabric_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

func TestChooseSaysWhyOthersWerePassedOver(t *testing.T) {
	var log bytes.Buffer
	choice, err := fabric.Choose(fabric.Preference{
		Providers: []string{"nonesuch", "no,list", "sockets"},
		Logger:    slog.New(slog.NewTextHandler(&log, nil)),
	})
	testenv.Need(t, "sockets", err)
	require.Equal(t, "sockets", choice.Info.Provider())
	require.Len(t, choice.Passed, 2)
	require.Equal(t, "nonesuch", choice.Passed[0].Provider)
	require.ErrorIs(t, choice.Passed[0].Reason, fabric.ErrNotFound)
	require.ErrorContains(t, choice.Passed[0].Reason, "no such provider; it has")
	require.ErrorIs(t, choice.Passed[1].Reason, fabric.ErrInvalid)
	require.Contains(t, log.String(), "provider=sockets")
	require.Contains(t, log.String(), "passed_over_nonesuch=")
}

func TestRequireForbidsFallingBack(t *testing.T) {
	_, err := fabric.Choose(fabric.Preference{Providers: []string{"nonesuch", "sockets"}, Require: true})
	var none *fabric.ChoiceError
	require.ErrorAs(t, err, &none)
	require.ErrorIs(t, err, fabric.ErrNotFound)
	require.Len(t, none.Rejections, 1)
	require.ErrorContains(t, err, "nonesuch")
}

func TestChooseNamesTheFilter(t *testing.T) {
	t.Setenv("FI_PROVIDER", "shm")
	_, err := fabric.Choose(fabric.Preference{Providers: []string{"nonesuch"}})
	require.ErrorContains(t, err, "FI_PROVIDER=shm")
}

func TestChooseSource(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp"} {
		choice, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Source: "127.0.0.1"})
		testenv.Need(t, provider, err)
		require.Equal(t, "lo", choice.Info.Domain())
		require.True(t, choice.Info.IP())
		_, err = fabric.Choose(fabric.Preference{Providers: []string{provider}, Source: "198.51.100.1"})
		require.ErrorContains(t, err, "cannot be bound to 198.51.100.1")
	}
}

func TestDiscoverNothing(t *testing.T) {
	_, err := fabric.Discover(fabric.Hints{Provider: "nonesuch"})
	require.ErrorIs(t, err, fabric.ErrNotFound)
	require.GreaterOrEqual(t, fabric.LibraryVersion().Minor+100*fabric.LibraryVersion().Major, 117)
}

// tcp stands for ofi_rxm over it where there is that, and each has a name of its own.
func TestChooseOverTCP(t *testing.T) {
	chosen := func(name string) (string, error) {
		choice, err := fabric.Choose(fabric.Preference{Providers: []string{name}, Source: "127.0.0.1"})
		if err != nil {
			return "", err
		}
		return choice.Info.Provider(), nil
	}
	for _, name := range []string{"tcp", "tcp;ofi_rxm"} {
		provider, err := chosen(name)
		testenv.Need(t, name, err)
		require.Equal(t, "tcp;ofi_rxm", provider)
	}
	provider, err := chosen("tcp;")
	if fabric.LibraryVersion().Major < 2 {
		require.ErrorIs(t, err, fabric.ErrNotFound)
		require.ErrorContains(t, err, "through utility layers only")
		return
	}
	require.NoError(t, err)
	require.Equal(t, "tcp", provider)
	infos, err := fabric.Discover(fabric.Hints{Provider: "tcp;", Endpoint: fabric.ReliableDatagram})
	require.NoError(t, err)
	for _, i := range infos {
		require.Equal(t, "tcp", i.Provider())
	}
}

// What is wanted is there if the provider has it, and decides nothing.
func TestChooseWhatIsWanted(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		p := fabric.Preference{Providers: []string{provider}, Wanted: fabric.RemoteMemory, Logger: slog.New(slog.DiscardHandler)}
		choice, err := fabric.Choose(p)
		require.NoError(t, err)
		require.Equal(t, fabric.RemoteMemory, choice.Info.Capabilities()&fabric.RemoteMemory)
		// None of them has it.
		p.Wanted = fabric.Multicast
		choice, err = fabric.Choose(p)
		require.NoError(t, err)
		require.Zero(t, choice.Info.Capabilities()&fabric.Multicast)
		p.Capabilities = fabric.Multicast
		_, err = fabric.Choose(p)
		require.ErrorIs(t, err, fabric.ErrNotFound)
	})
}
