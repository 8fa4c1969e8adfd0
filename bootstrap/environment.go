package bootstrap

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Launcher names what started the processes of a job.
type Launcher string

// The launchers whose variables are known.
const (
	LauncherWeft     Launcher = "weft"     // weft run
	LauncherTorchrun Launcher = "torchrun" // torchrun, and what sets the same variables
	LauncherOpenMPI  Launcher = "openmpi"  // mpirun of Open MPI
	LauncherMPICH    Launcher = "mpich"    // mpiexec of MPICH, and others with PMI
	LauncherSlurm    Launcher = "slurm"    // srun
	// LauncherOptions stands for Options.Rank and Options.Size.
	LauncherOptions Launcher = "options"
)

// The variables that are weft's own.
const (
	envLauncher = "WEFT_LAUNCHER"
	envStore    = "WEFT_STORE"
	envKey      = "WEFT_STORE_KEY"
	envKeyFile  = "WEFT_STORE_KEY_FILE"
)

// Member is one process of a job.
type Member struct {
	// Rank is from 0 to Size-1.
	Rank, Size int
	// LocalRank is the rank among the LocalSize processes of the job on this host.
	// Either is -1 where it is not known.
	LocalRank, LocalSize int
	// Job is the name of the job, the same on all ranks; empty where there is none.
	Job string
	// Launcher says where this comes from.
	Launcher Launcher
}

// variables are those of a launcher. Where there are several names for one, the
// first that is set counts.
type variables struct {
	launcher             Launcher
	command              string // that sets them
	rank, size           []string
	localRank, localSize string
	job                  []string // parts of the name of the job
	inherited            bool     // also by what is no rank of this launcher's
}

// launchers are in the order in which they are asked.
var launchers = []variables{
	{
		launcher: LauncherWeft, command: "weft run", rank: []string{"WEFT_RANK"}, size: []string{"WEFT_SIZE"},
		localRank: "WEFT_LOCAL_RANK", localSize: "WEFT_LOCAL_SIZE", job: []string{"WEFT_JOB"},
	},
	{
		launcher: LauncherTorchrun, command: "torchrun", rank: []string{"RANK"}, size: []string{"WORLD_SIZE"},
		localRank: "LOCAL_RANK", localSize: "LOCAL_WORLD_SIZE", job: []string{"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"},
	},
	{
		launcher: LauncherOpenMPI, command: "mpirun of Open MPI", rank: []string{"OMPI_COMM_WORLD_RANK"}, size: []string{"OMPI_COMM_WORLD_SIZE"},
		localRank: "OMPI_COMM_WORLD_LOCAL_RANK", localSize: "OMPI_COMM_WORLD_LOCAL_SIZE",
	},
	{
		launcher: LauncherMPICH, command: "mpiexec", rank: []string{"PMI_RANK"}, size: []string{"PMI_SIZE"},
		localRank: "MPI_LOCALRANKID", localSize: "MPI_LOCALNRANKS",
	},
	{
		launcher: LauncherSlurm, command: "srun", rank: []string{"SLURM_PROCID"}, size: []string{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
		localRank: "SLURM_LOCALID", job: []string{"SLURM_JOB_ID", "SLURM_STEP_ID"}, inherited: true,
	},
}

// environment reads variables; one that is empty is not set.
type environment func(name string) string

// first is the first of the names that is set, and its value.
func (e environment) first(names []string) (name, value string) {
	for _, name := range names {
		if value := e(name); value != "" {
			return name, value
		}
	}
	return names[0], ""
}

// member finds out which rank this is. want is the launcher to go by, or empty.
func (e environment) member(want Launcher) (Member, error) {
	if want == "" {
		want = Launcher(e(envLauncher))
	}
	if want != "" {
		for _, v := range launchers {
			if v.launcher == want {
				return v.read(e)
			}
		}
		return Member{}, &EnvironmentError{
			Launcher: want, Variables: []string{envLauncher},
			Detail: fmt.Sprintf("there is no launcher %q (%s); there are weft, torchrun, openmpi, mpich and slurm", printable(string(want)), envLauncher),
		}
	}
	for i, v := range launchers {
		if !v.present(e) {
			continue
		}
		m, err := v.read(e)
		if err != nil {
			return m, err
		}
		return m, v.agree(e, m, launchers[i+1:])
	}
	var names []string
	for _, v := range launchers {
		names = append(names, v.rank[0])
	}
	return Member{}, &EnvironmentError{
		Variables: names, Err: ErrNoEnvironment,
		Detail: "nothing says which rank this is: none of " + strings.Join(names, ", ") + " is set; start it with weft run -n N -- COMMAND, or set Options.Rank and Options.Size",
	}
}

// present says whether any of the variables is set that make a rank.
func (v *variables) present(e environment) bool {
	_, rank := e.first(v.rank)
	_, size := e.first(v.size)
	return rank != "" || size != ""
}

func (v *variables) read(e environment) (Member, error) {
	m := Member{LocalRank: -1, LocalSize: -1, Launcher: v.launcher}
	rankName, rank := e.first(v.rank)
	sizeName, size := e.first(v.size)
	if rank == "" || size == "" {
		return m, v.halfSet(rankName, rank, sizeName, size)
	}
	var err error
	if m.Size, err = v.number(sizeName, size, 1, MaxSize); err != nil {
		return m, err
	}
	if m.Rank, err = v.number(rankName, rank, 0, MaxSize); err != nil {
		return m, err
	}
	if m.Rank >= m.Size {
		return m, v.wrong(fmt.Sprintf("%s is %d, but %s is %d: ranks go from 0 to %d", rankName, m.Rank, sizeName, m.Size, m.Size-1), rankName, sizeName)
	}
	if value := e(v.localRank); value != "" {
		if m.LocalRank, err = v.number(v.localRank, value, 0, m.Size-1); err != nil {
			return m, err
		}
	}
	if err := v.readLocalSize(e, &m, sizeName); err != nil {
		return m, err
	}
	var parts []string
	for _, name := range v.job {
		if value := e(name); value != "" {
			parts = append(parts, value)
		}
	}
	m.Job = strings.Join(parts, ".")
	if len(m.Job) > mostJob {
		return m, v.wrong(fmt.Sprintf("the name of the job in %s has %d bytes, at most %d are allowed", strings.Join(v.job, ", "), len(m.Job), mostJob), v.job...)
	}
	return m, nil
}

func (v *variables) readLocalSize(e environment, m *Member, sizeName string) error {
	if v.launcher == LauncherSlurm {
		m.LocalSize = slurmLocalSize(e("SLURM_STEP_TASKS_PER_NODE"), e("SLURM_NODEID"))
	} else if value := e(v.localSize); value != "" {
		var err error
		if m.LocalSize, err = v.number(v.localSize, value, 1, MaxSize); err != nil {
			return err
		}
	}
	switch {
	case m.LocalSize > m.Size:
		return v.wrong(fmt.Sprintf("%s is %d, but %s is %d", v.localSize, m.LocalSize, sizeName, m.Size), v.localSize, sizeName)
	case m.LocalSize >= 0 && m.LocalRank >= m.LocalSize:
		return v.wrong(fmt.Sprintf("%s is %d, but %s is %d", v.localRank, m.LocalRank, v.localSize, m.LocalSize), v.localRank, v.localSize)
	}
	return nil
}

func (v *variables) halfSet(rankName, rank, sizeName, size string) error {
	missing, set := rankName, sizeName
	if rank != "" {
		missing, set = sizeName, rankName
	}
	if rank == "" && size == "" {
		return v.wrong(fmt.Sprintf("neither %s nor %s is set; %s sets both", rankName, sizeName, v.command), rankName, sizeName)
	}
	return v.wrong(fmt.Sprintf("%s is set, but %s is not; %s sets both", set, missing, v.command), missing, set)
}

func (v *variables) number(name, value string, least, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		return 0, v.wrong(fmt.Sprintf("%s is %q, where a number from %d to %d is needed", name, printable(value), least, most), name)
	}
	return n, nil
}

func (v *variables) wrong(detail string, names ...string) error {
	return &EnvironmentError{Launcher: v.launcher, Variables: names, Detail: detail}
}

// agree looks whether others say the same as the one that was asked first.
func (v *variables) agree(e environment, m Member, others []variables) error {
	for _, other := range others {
		if other.inherited || !other.present(e) {
			continue
		}
		o, err := other.read(e)
		if err != nil || o.Rank == m.Rank && o.Size == m.Size {
			continue
		}
		names := []string{v.rank[0], v.size[0], other.rank[0], other.size[0]}
		return &EnvironmentError{
			Launcher: v.launcher, Variables: names,
			Detail: fmt.Sprintf("%s and %s say rank %d of %d, but %s and %s say rank %d of %d; set %s=%s or %s=%s",
				names[0], names[1], m.Rank, m.Size, names[2], names[3], o.Rank, o.Size,
				envLauncher, v.launcher, envLauncher, other.launcher),
		}
	}
	return nil
}

// slurmLocalSize reads what Slurm says of the tasks of each node, such as
// "2(x3),1". It is -1 where it does not say it in this way.
func slurmLocalSize(perNode, node string) int {
	left, err := strconv.Atoi(node)
	if err != nil || left < 0 {
		return -1
	}
	for part := range strings.SplitSeq(perNode, ",") {
		count, times, repeated := strings.Cut(strings.TrimSuffix(part, ")"), "(x")
		nodes := 1
		if repeated {
			if nodes, err = strconv.Atoi(times); err != nil {
				return -1
			}
		}
		if left < nodes {
			n, err := strconv.Atoi(count)
			if err != nil || n < 1 {
				return -1
			}
			return n
		}
		left -= nodes
	}
	return -1
}

// Environment returns the settings, as NAME=VALUE, by which Join finds this member in
// a process that is started with them, and the store at an address, as WEFT_STORE has
// it. For those who start the processes of a job, as weft run does. key may be nil,
// and must be text.
func (m Member) Environment(address string, key []byte) []string {
	settings := []string{
		"WEFT_RANK=" + strconv.Itoa(m.Rank), "WEFT_SIZE=" + strconv.Itoa(m.Size),
		envStore + "=" + address,
	}
	if m.LocalSize > 0 {
		settings = append(settings, "WEFT_LOCAL_RANK="+strconv.Itoa(m.LocalRank), "WEFT_LOCAL_SIZE="+strconv.Itoa(m.LocalSize))
	}
	if m.Job != "" {
		settings = append(settings, "WEFT_JOB="+m.Job)
	}
	if key != nil {
		settings = append(settings, envKey+"="+string(key))
	}
	return settings
}

// WithoutJob returns settings, as os.Environ has them, without those that say which
// rank of which job a process is, so that those of another job can be added: those of weft
// (WEFT_STORE, WEFT_RANK and so on) and of the other launchers, and MASTER_ADDR, MASTER_PORT
// and all of TORCHELASTIC_. Slurm's stay, since they do not count then.
func WithoutJob(settings []string) []string {
	drop := map[string]bool{envLauncher: true, envStore: true, envKey: true, envKeyFile: true, "MASTER_ADDR": true, "MASTER_PORT": true}
	for _, v := range launchers {
		if v.inherited {
			continue
		}
		for _, names := range [][]string{v.rank, v.size, {v.localRank, v.localSize}, v.job} {
			for _, name := range names {
				drop[name] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(settings), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return drop[name] || strings.HasPrefix(name, "TORCHELASTIC_")
	})
}
