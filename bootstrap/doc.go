// Package bootstrap is how the ranks of a job find each other: which rank a
// process is, of how many, and a [Store] in which all of them leave what the
// others have to know, such as the address of an endpoint.
//
//	job, err := bootstrap.Join(ctx, bootstrap.Options{})
//	...
//	defer job.Close()
//	addresses, err := job.Exchange(ctx, "addresses", mine)
//
// [Join] goes by the environment, which is that of one of these, in this order:
//
//	weft run   WEFT_RANK, WEFT_SIZE, WEFT_LOCAL_RANK, WEFT_LOCAL_SIZE, WEFT_JOB
//	torchrun   RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, TORCHELASTIC_RUN_ID
//	Open MPI   OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE
//	MPICH      PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS
//	Slurm      SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS, SLURM_LOCALID
//
// Variables that are set in part, are out of range, or say two things are an
// [EnvironmentError] that names them. Two launchers that disagree are, too, and
// WEFT_LAUNCHER (weft, torchrun, openmpi, mpich, slurm) says which one is meant;
// but those of Slurm, which everything in an allocation inherits, count only where
// there are no others.
//
// Where the store is, is said by
//
//	WEFT_STORE=tcp://HOST:PORT            rank 0 serves it there
//	WEFT_STORE=tcp://HOST:PORT?serve=no   somebody else does, as weft run does
//	WEFT_STORE=file:///FOLDER             a folder that all ranks see, NFS for one
//	MASTER_ADDR and MASTER_PORT           rank 0 serves it there
//
// torchrun has a store of its own at MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE=True);
// weft's is at the next port then. WEFT_STORE_KEY, or a file that
// WEFT_STORE_KEY_FILE names, is a secret that all ranks must have.
//
// # The end of a job
//
// A rank that ends without [Job.Close] is lost, and with it the job: the context of
// [Job.Context] ends on all other ranks, with a [LostError] as its cause, and every
// call on the job and its store fails with that. Where a process ends, its
// connection to the store says so at once; where a host vanishes, it is found within
// Options.PeerTimeout. In a folder, either takes Options.PeerTimeout.
package bootstrap
