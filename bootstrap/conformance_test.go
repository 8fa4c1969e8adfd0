package bootstrap_test

import (
	"testing"

	"github.com/weft-go/weft/bootstrap"
	"github.com/weft-go/weft/bootstrap/storetest"
)

func TestStores(t *testing.T) {
	for name, suite := range map[string]storetest.Suite{
		"tcp":    {Open: bootstrap.OpenTCP, Kill: bootstrap.KillClient},
		"keyed":  {Open: bootstrap.OpenKeyedTCP, Kill: bootstrap.KillClient},
		"folder": {Open: bootstrap.OpenFolders, Kill: bootstrap.KillFolder},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite.Run(t)
		})
	}
}
