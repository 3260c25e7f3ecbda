"""Machine: what of a machine, beside the name of its CPU, explains how fast it is."""

from bench.schema.document import Count, Document


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
