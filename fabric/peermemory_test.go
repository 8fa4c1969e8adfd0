package fabric_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// An address may name any file in /dev/shm, whose content is not taken for an endpoint's.
func TestInsertForeignMemory(t *testing.T) {
	a, b := stations(t, "shm", fabric.Messages)
	name, err := b.e.Name()
	require.NoError(t, err)
	own, err := os.ReadFile(filepath.Join("/dev/shm", strings.TrimRight(strings.TrimPrefix(string(name), "fi_shm://"), "\x00")))
	require.NoError(t, err)
	random := make([]byte, 64<<10)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(source.Uint32())
	}
	for what, content := range map[string][]byte{
		"random": random, "a page": random[:4096], "a byte": random[:1], "ones": bytes.Repeat([]byte{0xff}, 17<<20),
		"a part of an endpoint": own[:8192], "zeros": make([]byte, 100),
	} {
		t.Run(what, func(t *testing.T) {
			file, err := os.CreateTemp("/dev/shm", "weft-foreign-")
			require.NoError(t, err)
			defer os.Remove(file.Name())
			defer file.Close()
			_, err = file.Write(content)
			require.NoError(t, err)
			plain := filepath.Base(file.Name())
			for _, address := range []string{"fi_shm://" + plain + "\x00", plain + "\x00"} {
				_, err = a.v.Insert([]byte(address))
				require.ErrorIs(t, err, fabric.ErrInvalid)
				all, err := a.v.InsertAll([][]byte{[]byte(address)})
				require.NoError(t, err)
				require.ErrorIs(t, all[0].Err, fabric.ErrInvalid)
			}
		})
	}
	// Nothing of it was kept.
	_, err = a.v.Insert(name)
	require.NoError(t, err)
}
