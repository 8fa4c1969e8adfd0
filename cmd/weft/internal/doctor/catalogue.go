package doctor

// Kind names what was found.
type Kind string

// The kinds of findings, in the order in which one thing needs the other.
const (
	AsItShouldBe Kind = "fine"

	NoCgo           Kind = "no-cgo"
	NoDevice        Kind = "no-device"
	NoDriver        Kind = "no-driver"
	NoVerbs         Kind = "no-verbs"
	NoUverbs        Kind = "no-uverbs"
	Permission      Kind = "permission"
	DeviceCgroup    Kind = "device-cgroup"
	BrokenUverbs    Kind = "broken-uverbs"
	OtherDevice     Kind = "other-device"
	PortDown        Kind = "port-down"
	NoVerbsPlugin   Kind = "no-verbs-plugin"
	LibraryDied     Kind = "library-died"
	NoProvider      Kind = "no-provider"
	Filtered        Kind = "filtered"
	FilteredDevices Kind = "filtered-devices"
	Unopened        Kind = "unopened"
	Unexplained     Kind = "unexplained"

	OldLibrary         Kind = "old-library"
	FatalVariable      Kind = "fatal-variable"
	MemoryLock         Kind = "memory-lock"
	ForcedRDMA         Kind = "forced-rdma"
	ForkSafe           Kind = "fork-safe"
	TwoLibraries       Kind = "two-libraries"
	OtherLibrary       Kind = "other-library"
	DeprecatedProvider Kind = "deprecated-provider"
	NoAnswers          Kind = "no-answers"
	Ptrace             Kind = "ptrace"
	NoCrossMemory      Kind = "no-cross-memory"
	SmallSharedMemory  Kind = "small-shared-memory"

	Emulated     Kind = "emulated"
	LibraryAge   Kind = "library-age"
	NoHugePages  Kind = "no-huge-pages"
	Untried      Kind = "untried"
	StaleNames   Kind = "stale-names"
	UnknownName  Kind = "unknown-variable"
	ProviderPath Kind = "provider-path"
	HiddenTraces Kind = "hidden-traces"
	Unseen       Kind = "unseen"
)

// about is what there is to say of all findings of a kind.
type about struct {
	severity Severity
	// cause says what it means, and do what to do about it.
	cause, do string
}

var catalogue = map[Kind]about{
	NoCgo: {
		Problem, "weft calls libfabric through cgo, on Linux. This program was built without cgo, or for another system: there it compiles, and nothing opens.",
		"Build it on Linux with CGO_ENABLED=1, a C compiler and the headers of libfabric (libfabric-dev).",
	},
	NoDevice: {
		Problem, "No function of the PCI bus is an EFA device (vendor 0x1d0f, devices 0xefa0 to 0xefa3). The machine is no instance of EC2, its type has no EFA, or no EFA network interface is attached to it. An ordinary network interface (ENA) is not one.",
		"Start an instance of a type that supports EFA, with a network interface of type efa attached at launch. To try out without one: scripts/with-efa runs a command on an emulated device.",
	},
	NoDriver: {
		Problem, "There is an EFA device, and the kernel's module efa has not taken it: it is not installed, not loaded, or was built for another kernel.",
		"modprobe efa, and look at dmesg. If there is no such module, install the EFA software of AWS on the host; in a container, on the host too.",
	},
	NoVerbs: {
		Problem, "The driver has the device, and offers it to nobody here: the module ib_uverbs is not loaded, or the RDMA subsystem keeps its devices to another network namespace.",
		"modprobe ib_uverbs. In a container: rdma system on the host says whether its mode is exclusive; rdma system set netns shared, or move the device to the namespace of the container.",
	},
	NoUverbs: {
		Problem, "The kernel offers the device, and its file below /dev/infiniband is not there. Containers have it only if they were given it.",
		"Start the container with --device for each /dev/infiniband/uverbs*; in Kubernetes request vpc.amazonaws.com/efa from the device plugin, and do not mount /dev/infiniband from the host. Outside of containers: look at udev's rules.",
	},
	Permission: {
		Problem, "The file of the device may not be opened for reading and writing by this user. It is a note where root looks, who may, and not everybody may.",
		"chmod 0666 the file, or let udev do so (a rule for SUBSYSTEM==\"infiniband_verbs\"), or run as a user of the group that may open it.",
	},
	DeviceCgroup: {
		Problem, "The file of the device is there and its permissions allow it, but the kernel does not: the container has the file without having been given the device (its device cgroup), or a security module refuses.",
		"Give the container the device, with --device or by the device plugin. To mount or to make the file is not enough.",
	},
	BrokenUverbs: {
		Problem, "The file of the device can be opened by nobody: the device went away, or the file is of another number than the device.",
		"Remove the file and have udev make it anew, or restart the container; look at dmesg.",
	},
	OtherDevice: {
		Warning, "Another RDMA device can be seen here and not be opened. Versions of libfabric's efa provider open all of them, and offer no device at all if one cannot be opened (ofiwg/libfabric issue 12708). It is a problem where libfabric offers none.",
		"Keep the others out of sight: in Kubernetes do not mount /dev/infiniband, and let the device plugin give what is to be used. Or give the container all of them.",
	},
	PortDown: {
		Problem, "The port of the device is not active, so that nothing can be sent.",
		"Look at dmesg and at the state of the network interface in EC2; stop and start the instance.",
	},
	NoVerbsPlugin: {
		Problem, "The kernel's side is as it should be, and libibverbs has no driver for EFA in this root: /etc/libibverbs.d has none for efa.",
		"Install rdma-core's drivers (ibverbs-providers on Debian and Ubuntu, libibverbs on Fedora) or the EFA software of AWS; in the container, not only on the host.",
	},
	LibraryDied: {
		Problem, "A process that only asked libfabric what it has did not live to tell. The efa provider calls abort() for some settings.",
		"Read what it said last. Unset settings whose names begin with FI_EFA_, and try FI_LOG_LEVEL=warn.",
	},
	OldLibrary: {
		Warning, "libfabric is older than 1.17, the oldest that weft is tested with.",
		"Install the EFA software of AWS, or Debian 12, Ubuntu 24.04 or later with libfabric of theirs.",
	},
	NoProvider: {
		Problem, "libfabric was built without the efa provider, and has no plugin of it. Before 2.1 libfabric does not list the provider on machines without a device either; then what it was linked with tells.",
		"Install a libfabric with it: the EFA software of AWS, or the package of Debian or Ubuntu. One built by hand needs --enable-efa and the headers of rdma-core.",
	},
	Filtered: {
		Problem, "FI_PROVIDER is set, and leaves efa out. libfabric then behaves as if there were no such provider.",
		"Unset FI_PROVIDER, or name efa there.",
	},
	FilteredDevices: {
		Problem, "FI_EFA_IFACE is set, and names none of the devices that are here.",
		"Unset FI_EFA_IFACE, or name a device there.",
	},
	FatalVariable: {
		Warning, "A setting is there that newer efa providers do not have any more: they call abort() when they see it. It is a problem where libfabric did not live to tell what it has.",
		"Unset it.",
	},
	Unopened: {
		Problem, "libfabric offers the device, and an endpoint on it cannot be opened.",
		"The error says why. FI_LOG_LEVEL=warn has libfabric say more.",
	},
	Unexplained: {
		Problem, "Nothing that was looked at is wrong, and libfabric offers no device of EFA.",
		"FI_LOG_LEVEL=info fi_info -p efa shows what libfabric tries.",
	},
	MemoryLock: {
		Warning, "The process may lock less memory than EFA needs: what is registered with the device is locked, some 110 MB for an endpoint and all that the program registers. It is a problem where an endpoint could not be opened, and a note where the limit is enough for 32 endpoints, one on each device of the largest instances.",
		"Set the limit to unlimited: ulimit -l, limits.conf, LimitMEMLOCK= of the service, --ulimit memlock=-1 of the container, or --cap-add IPC_LOCK for root in it.",
	},
	ForcedRDMA: {
		Warning, "FI_EFA_USE_DEVICE_RDMA=1 is set, and a device of the first generation (0xefa0) may not have that: the provider calls abort() where it has not.",
		"Unset it: where the device has RDMA, the provider uses it.",
	},
	ForkSafe: {
		Warning, "A setting has rdma-core protect memory against fork(). From Linux 5.13 with rdma-core 35 on that is not needed, it is slow, and with huge pages the efa provider calls abort().",
		"Unset it, unless the kernel is older.",
	},
	TwoLibraries: {
		Warning, "The process has two libfabrics in it. Each has devices, settings and a memory cache of its own, and which of the two is called depends on the order in which they were loaded.",
		"Build and run everything in the process with one: ldd tells which part wants which.",
	},
	OtherLibrary: {
		Warning, "The libfabric of AWS is installed, and the process has another one.",
		"Run with LD_LIBRARY_PATH=/opt/amazon/efa/lib64 (or lib), and build with PKG_CONFIG_PATH set to the folder pkgconfig there.",
	},
	DeprecatedProvider: {
		Warning, "The provider that is used, or would be, is sockets, which libfabric has deprecated: it is for development, and far slower than tcp.",
		"Ask for tcp where there is no EFA: --provider efa,tcp. To forbid anything but EFA: --provider efa --require.",
	},
	NoAnswers: {
		Warning, "The device has sent packets to peers that do not answer. A security group that does not let EFA through looks like this, and so does a peer in another subnet, or one that is gone.",
		"The security group must allow all traffic from and to itself, in and out, and both instances must be in it and in one subnet: a rule for TCP or for all addresses is not enough.",
	},
	Ptrace: {
		Warning, "The kernel lets processes look into each other's memory only if one has started the other (kernel.yama.ptrace_scope). Providers for one host, shm and that part of efa, then copy twice or leave each other alone.",
		"sysctl -w kernel.yama.ptrace_scope=0; in containers --cap-add SYS_PTRACE.",
	},
	NoCrossMemory: {
		Warning, "The system call with which processes read each other's memory is refused, even of the own process: by the seccomp profile of the container, or by a kernel without it. Providers for one host, shm and that part of efa, then copy twice.",
		"Start the container with --cap-add SYS_PTRACE, for which the profile of Docker allows it, or with a profile that has process_vm_readv and process_vm_writev.",
	},
	SmallSharedMemory: {
		Warning, "/dev/shm has less room than the shm provider wants, which is 16 MiB for each processor, and that efa uses between processes of one host.",
		"Start the container with a --shm-size of 16m for each processor, or with --ipc=host; mount an emptyDir with medium: Memory there in Kubernetes.",
	},
	Emulated: {
		Note, "The device that libfabric has is not on the PCI bus: it is an emulated one. All that is said of hardware is not about it.",
		"Nothing, if that was meant. LD_PRELOAD is where it comes from.",
	},
	LibraryAge: {
		Note, "libfabric is older than 1.18. With such a one the efa provider does not use RDMA of newer devices.",
		"Install the EFA software of AWS.",
	},
	NoHugePages: {
		Note, "No huge pages are free. The efa provider takes its buffers from them if there are any, about 110 MB for an endpoint, and does with ordinary ones otherwise.",
		"sysctl -w vm.nr_hugepages=5128, as the EFA software of AWS does; in Kubernetes request hugepages-2Mi.",
	},
	Untried: {
		Note, "The device has not sent anything yet. Whether a security group blocks EFA can be seen only afterwards.",
		"weft ping between two instances, and weft doctor again.",
	},
	StaleNames: {
		Note, "/dev/shm has names of processes that are gone, which were killed while they had endpoints on shm or efa. They take memory.",
		"Remove them, unless containers share this /dev/shm: a process of another one cannot be seen.",
	},
	UnknownName: {
		Note, "A setting that begins with FI_ is none that this libfabric knows: it is misspelt, or of another version.",
		"fi_info -e lists those that it knows.",
	},
	ProviderPath: {
		Note, "FI_PROVIDER_PATH is set: libfabric takes providers from there, before its own.",
		"Unset it, if an efa provider of another version may be there.",
	},
	HiddenTraces: {
		Note, "This libfabric brings libinfinipath, which catches signals and hides the traces of Go's crashes.",
		"Set IPATH_NO_BACKTRACE=1 before the program starts.",
	},
	Unseen: {
		Note, "Something could not be looked at, because the user may not, or the system does not show it.",
		"Run weft doctor as the user of the program, or as root.",
	},
}
