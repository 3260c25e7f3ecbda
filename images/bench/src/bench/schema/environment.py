"""Environment: where a repeat ran. Results whose environments differ are not aggregated."""

from bench.schema.document import Amount, Bytes, Count, Document, Integer, Number, PositiveAmount
from bench.schema.machine import Machine, MachineIdentity


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
