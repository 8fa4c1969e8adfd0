package docker_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

// ParallelCluster's own checker is a program in Python that asks AWS, and not to be had
// from where this module takes its tools. So the configuration is checked against what its
// schema says of the keys and values that it uses.
func TestParallelClusterConfigurationIsValid(t *testing.T) {
	text, err := os.ReadFile("testdata/parallelcluster/schema.yaml")
	require.NoError(t, err)
	var schema spec.Schema
	require.NoError(t, yaml.UnmarshalStrict(text, &schema))
	validator := validate.NewSchemaValidator(&schema, nil, "", strfmt.Default)
	check := func(text string) error {
		var cluster any
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &cluster))
		return validator.Validate(cluster).AsError()
	}

	text, err = os.ReadFile("parallelcluster/cluster.yaml")
	require.NoError(t, err)
	right := string(text)
	require.NoError(t, check(right))

	// It would have been found.
	for _, c := range []struct{ from, to, says string }{
		{"Efa:", "EFA:", "Scheduling.SlurmQueues[0].ComputeResources[0].EFA"},
		{"Os: alinux2023", "Os: debian12", "Image.Os"},
		{"MaxCount: 4", "MaxCount: four", "MaxCount"},
		{"- subnet-00000000000000000", "- subnet-0", "SubnetIds"},
		{"    MountDir: /shared\n", "", "MountDir"},
		{"Scheduler: slurm", "Scheduler: lsf", "Scheduling.Scheduler"},
	} {
		wrong := strings.Replace(right, c.from, c.to, 1)
		require.NotEqual(t, right, wrong)
		require.ErrorContains(t, check(wrong), c.says)
	}
}
