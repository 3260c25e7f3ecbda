"""Environment: where a repeat ran. Results whose environments differ are not aggregated."""

from bench.schema.document import Amount, Bytes, Count, Document, Integer, Number, PositiveAmount, Time


class Gpu(Document):
    """A GPU that a cell ran on, as NVML names it."""

    name: str
    uuid: str
    driver_version: str
    memory_total_bytes: Bytes
    compute_capability: str | None = None
    """`7.5` for a T4."""
    cuda_version: str | None
    """The CUDA version that the framework was built for or runs on."""
    cudnn_version: str | None
    mig_profile: str | None = None
    """The profile of a MIG slice, such as `1g.5gb`; None for a whole GPU."""
    ecc_enabled: bool | None = None
    pcie_generation: Number | None = None
    """Of the link to the machine, when the environment was read: a GPU that does nothing may lower it."""
    pcie_width: Number | None = None
    """Lanes."""
    max_pcie_generation: Number | None = None
    """The most that device and machine together allow."""
    max_pcie_width: Number | None = None
    power_limit_watts: Amount | None = None
    """The limit in force."""
    default_power_limit_watts: Amount | None = None


class Machine(Document):
    """What of a machine, beside the name of its CPU, explains how fast it is. None: not readable there."""

    vendor: str | None = None
    """By its firmware (DMI), such as `Amazon EC2`, `Google` or `Dell Inc.`."""
    product: str | None = None
    """By its firmware (DMI); on EC2 the instance type."""
    is_virtual: bool | None = None
    """Whether a hypervisor is below the kernel; ARM CPUs do not say."""
    num_online_cores: Count | None = None
    """Logical cores of the machine that are switched on. The environment's `num_visible_cores` are fewer where a cpuset
    says so: Kubernetes' CPU manager, `docker run --cpuset-cpus`, taskset."""
    visible_cores: str | None = None
    """Which of them this process may use, as the kernel lists them (`0-3,8`)."""
    num_physical_cores: Count | None = None
    """Physical cores that the visible ones belong to: half as many where each brings its hyperthread along."""
    num_sockets: Count | None = None
    """Of the visible cores."""
    num_numa_nodes: Count | None = None
    """Of the visible cores."""
    threads_per_core: Count | None = None
    """Logical cores that share a physical core of this machine: 2 with hyperthreads, 1 without."""
    instruction_sets: tuple[str, ...] = ()
    """Extensions that matrix products use, by the kernel's names, such as `avx2`, `avx512_bf16`, `asimd` and `sve`."""


class MachineIdentity(Document):
    """What tells a machine from others of its host name. It explains no time and is in no `environment_id`."""

    boot_id: str | None = None
    """The kernel's id of this boot, in most containers the host's: /proc/sys/kernel/random/boot_id. None: not
    readable."""
    booted_at: Time | None = None
    """When the boot began, by the machine's clock: `btime` of /proc/stat. A virtual machine that was restored from a
    snapshot kept the boot's id, and this has moved by the time that it did not run."""
    lasting_ids: tuple[str, ...] = ()
    """What outlives a reboot, each as the first 16 hex digits of a keyed hash, sorted: the id of an EC2
    instance, and the addresses of network cards that their makers gave. Empty: none is readable, as in most
    containers."""


class Environment(Document):
    """Where a repeat ran. Results whose environments differ are not aggregated."""

    hostname: str
    """The name of the machine; on a cluster that of the node."""
    kernel: str
    python_version: str
    cpu_model: str
    num_visible_cores: Count
    """Cores in the scheduler's affinity mask."""
    cpu_quota_cores: PositiveAmount | None
    """The cgroup's CPU quota in cores; None: no quota."""
    num_threads: Count
    """floor(quota or visible cores), at least 1: given to every library."""
    cpu_governor: str | None
    machine: Machine | None = None
    """Firmware, cores, NUMA nodes and instruction sets; None: not recorded."""
    identity: MachineIdentity | None = None
    """What tells the machine from others of its name; None: not recorded."""
    memory_total_bytes: Bytes
    """The memory of the machine."""
    memory_limit_bytes: Bytes | None = None
    """The limit of the tightest cgroup around the process; None: no limit."""
    versions: dict[str, str]
    """Package name to version, for everything that can change a time."""
    settings: dict[str, str | Integer | bool]
    """The framework's switches as they stood during the measurement."""
    gpus: tuple[Gpu, ...] = ()
    """The GPUs of the cell, `num_gpus` of them; none for a CPU cell."""
    image: str | None
    """The container image by digest; None outside containers."""
    git_revision: str | None
    """Revision of the benchmatrix checkout; ends in `-dirty` where it had changes."""

    @property
    def gpu(self) -> Gpu | None:
        """The first GPU; None for a CPU cell."""
        return self.gpus[0] if self.gpus else None
