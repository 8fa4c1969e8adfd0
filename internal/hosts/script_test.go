//go:build linux

package hosts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/hosts"
	"github.com/weft-go/weft/internal/testenv"
)

// Where no network can be made, scripts/test-hosts runs nothing, which is a failure if
// there should be one.
func TestScriptWithoutNamespaces(t *testing.T) {
	hosts.New(t, hosts.Config{Hosts: 1}) // or its tools would be installed
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "unshare"), []byte("#!/bin/sh\nexit 1\n"), 0o700))
	for required, fails := range map[string]bool{"": false, "efa": false, "hosts": true, "sockets, hosts,efa": true} {
		script := exec.CommandContext(t.Context(), "../../scripts/test-hosts")
		script.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), testenv.Require+"="+required)
		out, err := script.CombinedOutput()
		require.Contains(t, string(out), "no test ran between hosts", required)
		require.Equal(t, fails, err != nil, "%q: %v: %s", required, err, out)
	}
}
