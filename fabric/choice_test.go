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
