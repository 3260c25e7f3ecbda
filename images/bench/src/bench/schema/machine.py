"""Machine and MachineIdentity: what explains how fast a machine is, and what tells it from all others."""

from bench.schema.document import Count, Document, Time


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
    """What outlives a reboot, each as the first 16 hex digits of a keyed hash, sorted: the id of a cloud's instance,
    the UUID by firmware or hypervisor, and the addresses of network cards that their makers gave. Empty: none is
    readable, as in most containers."""
