package docker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A host that is cut off amid a transfer is noticed by both sides: each ends with the
// code for a peer that is lost, within the time that they were given.
func TestHostIsCutOff(t *testing.T) {
	network := unique(t, "cut")
	docker(t, "network", "create", "--internal", network)
	removed(t, "network", network)
	start := func(host string, flags []string, command string) {
		name := network + "-" + host
		args := append([]string{"run", "--detach", "--name", name, "--network", network, "--network-alias", host}, flags...)
		docker(t, append(args, "weft-demo:"+tag(t), "bash", "-c", command)...)
		removed(t, "container", name)
	}
	const patience = " --provider tcp --require --timeout 15s"

	start("receiver", nil, "exec weft recv --listen :7465 --dir /inbox --once"+patience)
	await(t, func() bool {
		return strings.Contains(docker(t, "logs", network+"-receiver"), "listening on")
	})
	// A link on which the file takes minutes.
	slow := []string{"--cap-add", "NET_ADMIN", "--env", "WEFT_TC=tbf rate 20mbit burst 64kb latency 50ms"}
	start("sender", slow, "truncate --size 1G /file; exec weft send"+patience+" /file receiver:7465")
	await(t, func() bool {
		// By its size: zeros take no room.
		return docker(t, "exec", network+"-receiver", "find", "/inbox", "-type", "f", "-size", "+1M") != ""
	})

	docker(t, "network", "disconnect", network, network+"-receiver")
	for _, host := range []string{"sender", "receiver"} {
		require.Equal(t, "4", docker(t, "wait", network+"-"+host), host)
		o := run(t, "docker", "logs", network+"-"+host)
		t.Logf("%s: %s", host, o)
	}
}

// await waits until something is so.
func await(t *testing.T, so func() bool) {
	t.Helper()
	require.Eventually(t, so, limit, 200*time.Millisecond)
}
