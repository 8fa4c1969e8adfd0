package bootstrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// settings is an environment from lines of NAME=VALUE.
func settings(lines ...string) environment {
	set := map[string]string{}
	for _, line := range lines {
		for setting := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(setting, "=")
			set[name] = value
		}
	}
	return func(name string) string { return set[name] }
}

// complete are the environments of all launchers, for rank 5 of 8, which is rank 1
// of 4 on its host.
var complete = map[Launcher]string{
	LauncherWeft:     "WEFT_RANK=5 WEFT_SIZE=8 WEFT_LOCAL_RANK=1 WEFT_LOCAL_SIZE=4 WEFT_JOB=name",
	LauncherTorchrun: "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 TORCHELASTIC_RUN_ID=name",
	LauncherOpenMPI:  "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=4",
	LauncherMPICH:    "PMI_RANK=5 PMI_SIZE=8 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4",
	LauncherSlurm:    "SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=8 SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=2(x2),4 SLURM_NODEID=2 SLURM_JOB_ID=77 SLURM_STEP_ID=3",
}

func TestEachEnvironment(t *testing.T) {
	jobs := map[Launcher]string{LauncherWeft: "name", LauncherTorchrun: "name", LauncherSlurm: "77.3"}
	for launcher, text := range complete {
		t.Run(string(launcher), func(t *testing.T) {
			m, err := settings(text).member("")
			require.NoError(t, err)
			require.Equal(t, Member{Rank: 5, Size: 8, LocalRank: 1, LocalSize: 4, Job: jobs[launcher], Launcher: launcher}, m)
			m, err = settings(text).member(launcher)
			require.NoError(t, err)
			require.Equal(t, 5, m.Rank)
		})
	}
}

// What says nothing of the host is not made up.
func TestEnvironmentsWithoutHost(t *testing.T) {
	for _, text := range []string{
		"WEFT_RANK=0 WEFT_SIZE=1", "RANK=0 WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1",
		"PMI_RANK=0 PMI_SIZE=1", "SLURM_PROCID=0 SLURM_NTASKS=1",
	} {
		m, err := settings(text).member("")
		require.NoError(t, err, text)
		require.Equal(t, []int{0, 1, -1, -1}, []int{m.Rank, m.Size, m.LocalRank, m.LocalSize}, text)
	}
}

func TestHalfSetEnvironments(t *testing.T) {
	for launcher, names := range map[Launcher][2]string{
		LauncherWeft:     {"WEFT_RANK", "WEFT_SIZE"},
		LauncherTorchrun: {"RANK", "WORLD_SIZE"},
		LauncherOpenMPI:  {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
		LauncherMPICH:    {"PMI_RANK", "PMI_SIZE"},
		LauncherSlurm:    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
	} {
		for i := range names {
			set, missing := names[i], names[1-i]
			_, err := settings(set + "=1").member("")
			var wrong *EnvironmentError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, launcher, wrong.Launcher)
			require.ElementsMatch(t, names, wrong.Variables)
			require.ErrorContains(t, err, set+" is set, but "+missing+" is not")
			require.NotErrorIs(t, err, ErrNoEnvironment)
		}
	}
}

func TestWrongEnvironments(t *testing.T) {
	for text, c := range map[string]struct {
		names []string
		says  string
	}{
		"RANK=x WORLD_SIZE=4":                                          {[]string{"RANK"}, `RANK is "x"`},
		"RANK=-1 WORLD_SIZE=4":                                         {[]string{"RANK"}, `RANK is "-1"`},
		"RANK=4 WORLD_SIZE=4":                                          {[]string{"RANK", "WORLD_SIZE"}, "ranks go from 0 to 3"},
		"RANK=0 WORLD_SIZE=0":                                          {[]string{"WORLD_SIZE"}, `WORLD_SIZE is "0"`},
		"RANK=0 WORLD_SIZE=99999999999":                                {[]string{"WORLD_SIZE"}, "65536"},
		"RANK=0 WORLD_SIZE=4 LOCAL_RANK=4":                             {[]string{"LOCAL_RANK"}, "0 to 3"},
		"RANK=0 WORLD_SIZE=4 LOCAL_RANK=2 LOCAL_WORLD_SIZE=2":          {[]string{"LOCAL_RANK", "LOCAL_WORLD_SIZE"}, "LOCAL_RANK is 2, but LOCAL_WORLD_SIZE is 2"},
		"RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=5":                       {[]string{"LOCAL_WORLD_SIZE", "WORLD_SIZE"}, "LOCAL_WORLD_SIZE is 5"},
		"WEFT_RANK=0 WEFT_SIZE=2 WEFT_JOB=" + strings.Repeat("j", 200): {[]string{"WEFT_JOB"}, "200 bytes"},
		"WEFT_RANK=0 WEFT_SIZE=2 RANK=1 WORLD_SIZE=2":                  {[]string{"WEFT_RANK", "WEFT_SIZE", "RANK", "WORLD_SIZE"}, "WEFT_LAUNCHER=weft or WEFT_LAUNCHER=torchrun"},
		"RANK=0 WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4": {
			[]string{"RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, "rank 0 of 2",
		},
		"WEFT_LAUNCHER=lsf RANK=0 WORLD_SIZE=2":   {[]string{"WEFT_LAUNCHER"}, `no launcher "lsf"`},
		"WEFT_LAUNCHER=slurm RANK=0 WORLD_SIZE=2": {[]string{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}, "neither SLURM_PROCID nor SLURM_STEP_NUM_TASKS is set"},
	} {
		_, err := settings(text).member("")
		var wrong *EnvironmentError
		require.ErrorAs(t, err, &wrong, text)
		require.Equal(t, c.names, wrong.Variables, text)
		require.ErrorContains(t, err, c.says, text)
	}
}

func TestNoEnvironment(t *testing.T) {
	_, err := settings("HOME=/ RANKS=7").member("")
	require.ErrorIs(t, err, ErrNoEnvironment)
	for _, name := range []string{"WEFT_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"} {
		require.ErrorContains(t, err, name)
	}
}

// Which launcher counts where there are several.
func TestSeveralEnvironments(t *testing.T) {
	for text, launcher := range map[string]Launcher{
		complete[LauncherWeft] + " " + complete[LauncherTorchrun]:            LauncherWeft,
		complete[LauncherTorchrun] + " " + complete[LauncherOpenMPI]:         LauncherTorchrun,
		complete[LauncherOpenMPI] + " " + complete[LauncherMPICH]:            LauncherOpenMPI,
		complete[LauncherMPICH] + " SLURM_PROCID=0 SLURM_NTASKS=2":           LauncherMPICH,
		complete[LauncherOpenMPI] + " SLURM_PROCID=0 SLURM_NTASKS=99":        LauncherOpenMPI,
		complete[LauncherWeft] + " SLURM_NTASKS=99":                          LauncherWeft,
		complete[LauncherWeft] + " RANK=0":                                   LauncherWeft,
		"WEFT_LAUNCHER=torchrun WEFT_RANK=0 WEFT_SIZE=2 RANK=3 WORLD_SIZE=8": LauncherTorchrun,
		"WEFT_LAUNCHER=weft WEFT_RANK=0 WEFT_SIZE=2 RANK=3 WORLD_SIZE=8":     LauncherWeft,
	} {
		m, err := settings(text).member("")
		require.NoError(t, err, text)
		require.Equal(t, launcher, m.Launcher, text)
	}
}

func TestSlurmTasksOfNodes(t *testing.T) {
	for text, size := range map[string]int{
		"4 0": 4, "2(x3),1 0": 2, "2(x3),1 2": 2, "2(x3),1 3": 1, "2(x3),1 4": -1, "x 0": -1, "2(xy) 0": -1,
		"2(x3) -1": -1, "2(x3) n": -1, "0 0": -1, " 0": -1,
	} {
		perNode, node, _ := strings.Cut(text, " ")
		require.Equal(t, size, slurmLocalSize(perNode, node), text)
	}
}

func TestStoreAddress(t *testing.T) {
	m := Member{Size: 4, Launcher: LauncherTorchrun}
	alone := Member{Size: 1}
	for _, c := range []struct {
		member Member
		text   string
		want   address
	}{
		{m, "WEFT_STORE=tcp://host:77", address{text: "tcp://host:77", tcp: "host:77"}},
		{m, "WEFT_STORE=tcp://[::1]:77", address{text: "tcp://[::1]:77", tcp: "[::1]:77"}},
		{m, "WEFT_STORE=tcp://host:77?serve=no MASTER_ADDR=other MASTER_PORT=1", address{text: "tcp://host:77?serve=no", tcp: "host:77", served: true}},
		{m, "WEFT_STORE=file:///a/../folder/", address{text: "file:///a/../folder/", folder: "/folder"}},
		{m, "MASTER_ADDR=host MASTER_PORT=29500", address{text: "tcp://host:29500", tcp: "host:29500"}},
		{m, "MASTER_ADDR=fe80::1 MASTER_PORT=29500", address{text: "tcp://[fe80::1]:29500", tcp: "[fe80::1]:29500"}},
		{m, "MASTER_ADDR=host MASTER_PORT=29500 TORCHELASTIC_USE_AGENT_STORE=True", address{text: "tcp://host:29501", tcp: "host:29501"}},
		{Member{Size: 4, Launcher: LauncherOpenMPI}, "MASTER_ADDR=host MASTER_PORT=29500 TORCHELASTIC_USE_AGENT_STORE=True", address{text: "tcp://host:29500", tcp: "host:29500"}},
		{alone, "", address{text: "memory"}},
		{alone, "MASTER_ADDR=host MASTER_PORT=29500", address{text: "memory"}},
		{alone, "WEFT_STORE=tcp://host:77?serve=no", address{text: "tcp://host:77?serve=no", tcp: "host:77", served: true}},
		{alone, "WEFT_STORE=file:///folder", address{text: "file:///folder", folder: "/folder"}},
	} {
		a, err := settings(c.text).storeAddress(c.member, "")
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, a, c.text)
	}
	a, err := settings("WEFT_STORE=tcp://host:77").storeAddress(m, "tcp://given:1")
	require.NoError(t, err)
	require.Equal(t, "given:1", a.tcp)
}

func TestWrongStoreAddresses(t *testing.T) {
	m := Member{Size: 4, Launcher: LauncherTorchrun}
	for text, names := range map[string][]string{
		"":                                  {"WEFT_STORE", "MASTER_ADDR", "MASTER_PORT"},
		"MASTER_ADDR=host":                  {"MASTER_PORT", "MASTER_ADDR"},
		"MASTER_PORT=77":                    {"MASTER_ADDR", "MASTER_PORT"},
		"MASTER_ADDR=host MASTER_PORT=many": {"MASTER_PORT"},
		"MASTER_ADDR=host MASTER_PORT=0":    {"MASTER_PORT"},
		"MASTER_ADDR=host MASTER_PORT=65535 TORCHELASTIC_USE_AGENT_STORE=True": {"MASTER_PORT", "WEFT_STORE"},
	} {
		_, err := settings(text).storeAddress(m, "")
		var wrong *EnvironmentError
		require.ErrorAs(t, err, &wrong, text)
		require.Equal(t, names, wrong.Variables, text)
	}
	for _, store := range []string{
		"host:77", "tcp://host", "tcp://:77", "tcp://host:0", "tcp://host:99999", "tcp://host:77/path", "tcp://host:77?serve=yes",
		"tcp://u@host:77", "tcp://host:77#x", "file://host/folder", "file:///folder?x=y", "file:relative", "http://host:77", "%",
	} {
		_, err := settings("WEFT_STORE="+store).storeAddress(m, "")
		var wrong *ConfigError
		require.ErrorAs(t, err, &wrong, store)
		require.Equal(t, "WEFT_STORE", wrong.Field)
		require.ErrorContains(t, err, "tcp://HOST:PORT or file:///FOLDER")
	}
}

func TestListenAt(t *testing.T) {
	for tcp, at := range map[string]string{
		"10.0.0.1:7": "10.0.0.1:7", "[::1]:7": "[::1]:7", "localhost:7": "localhost:7", "node17:7": ":7", "[fe80::1%eth0]:7": "[fe80::1%eth0]:7",
	} {
		got, err := listenAt(tcp)
		require.NoError(t, err)
		require.Equal(t, at, got)
	}
}

func TestKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef\n"), 0o600))
	for text, want := range map[string]string{
		"":                                "",
		"WEFT_STORE_KEY=fedcba9876543210": "fedcba9876543210",
		"WEFT_STORE_KEY_FILE=" + file:     "0123456789abcdef",
	} {
		key, err := settings(text).key(nil)
		require.NoError(t, err)
		require.Equal(t, want, string(key))
	}
	key, err := settings("WEFT_STORE_KEY=fedcba9876543210").key([]byte("aaaabbbbccccdddd"))
	require.NoError(t, err)
	require.Equal(t, "aaaabbbbccccdddd", string(key))

	var config *ConfigError
	_, err = settings("WEFT_STORE_KEY=short").key(nil)
	require.ErrorAs(t, err, &config)
	require.Equal(t, "WEFT_STORE_KEY", config.Field)
	_, err = settings().key([]byte{})
	require.ErrorAs(t, err, &config)

	var wrong *EnvironmentError
	_, err = settings("WEFT_STORE_KEY_FILE=" + file + "x").key(nil)
	require.ErrorAs(t, err, &wrong)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = settings("WEFT_STORE_KEY=fedcba9876543210 WEFT_STORE_KEY_FILE=" + file).key(nil)
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, []string{"WEFT_STORE_KEY", "WEFT_STORE_KEY_FILE"}, wrong.Variables)
}
