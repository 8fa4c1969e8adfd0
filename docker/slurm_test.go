package docker_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The job file is taken by Slurm, and its job runs: in a cluster of one node, on which
// all four ranks are, and over tcp, since it has no EFA. Its own four nodes are refused
// there, which shows that its directives are read.
func TestSlurmRunsTheJob(t *testing.T) {
	image := "weft-slurm:" + tag(t)
	o := run(t, "docker", "build", "--build-arg", "WEFT_TAG="+tag(t), "--tag", image, "docker/testdata/slurm")
	require.Zero(t, o.code, "%s", o)
	t.Cleanup(func() { docker(t, "image", "rm", image) })

	jobs, err := filepath.Abs("slurm")
	require.NoError(t, err)
	o = run(t, "docker", "run", "--rm", "--hostname", "node", "--volume", jobs+":/jobs:ro", "--workdir", "/tmp",
		"--env", "SGD=/usr/local/bin/sgd", "--env", "PROVIDER=tcp", image, "bash", "-c", `
			sbatch --test-only /jobs/sgd.sbatch && exit 90
			sbatch --test-only --nodes=1 --ntasks-per-node=4 /jobs/sgd.sbatch || exit 91
			sbatch --wait --nodes=1 --ntasks-per-node=4 --output=/tmp/out /jobs/sgd.sbatch
			code=$?
			cat /tmp/out
			exit $code`)
	require.Zero(t, o.code, "%s", o)
	require.Contains(t, o.stdout, "4 ranks on tcp")
	require.Contains(t, o.stderr, "Requested node configuration is not available")
}
