"""Checks that nobody else used the device or the cores: contaminated."""

from collections.abc import Iterator

from bench.schema import CpuUse
from bench.verdicts.inputs import ValidityInputs

# contaminated. A CUDA context alone takes more than this on any GPU; what a display or a driver keeps takes less.
# Bytes count where the processes behind them cannot be seen, as in most containers.
MAX_FOREIGN_BYTES = 100 * 2**20
# CPU cells: others may use the cores that this cell's threads leave free. A tenth of the cell's threads without a core
# is the size of what runs differ by anyway, and above what an idle desktop does.
MAX_MISSING_SHARE = 0.10
# So does the hyperthread beside a core of the cell: both share the core's units, and each slows the other.
# GPU cells launch kernels from one thread, which sleeps and wakes. It finds a free core at once while any is idle: the
# load of others counts only where less than this share of the machine stays idle, 0.4 of eight cores. And they must
# have a part in it: a tenth of the machine, more than an idle desktop uses beside a cell that fills the cores itself.
MIN_IDLE_SHARE = 0.05
MAX_OTHER_SHARE = 0.10


def check_gpu_neighbours(inputs: ValidityInputs) -> Iterator[str]:
    for gpu in inputs.gpu_use:
        for when, processes, num_bytes in (
            ("before the start", gpu.foreign_processes, gpu.memory_used_before_bytes),
            ("after the window", gpu.foreign_processes_after, gpu.foreign_memory_after_bytes),
        ):
            if inputs.is_under_mps and when == "before the start":
                num_bytes = None  # its server's, or another client's: list_unchecked_neighbours says so
            if processes:
                pids = ", ".join(str(process.pid) for process in processes)
                yield f"{gpu.uuid} was computing for others {when} (process {pids})"
            elif (num_bytes or 0) > MAX_FOREIGN_BYTES:
                used, bound = (value / 2**20 for value in (num_bytes or 0, MAX_FOREIGN_BYTES))
                yield f"{used:.0f} MiB of {gpu.uuid} were in use by others {when}, more than {bound:.0f}"


def check_cpu_neighbours(inputs: ValidityInputs) -> Iterator[str]:
    use = inputs.cpu_use
    if use is None:
        return
    others, num_cores = find_others(use)
    busy = f"others kept {others:.1f} of {num_cores} cores busy"
    if inputs.cell.device == "cpu":
        needed = inputs.num_threads  # they wait for the slowest among them
        if is_short_of_cores(use, needed):
            missing = count_missing_cores(use, needed)
            yield (
                f"{busy}: the cell's {needed} threads were short of {missing:.1f} cores, more than "
                f"{MAX_MISSING_SHARE:.0%} of {needed}"
            )
        if (use.sibling_busy_cores or 0.0) > MAX_MISSING_SHARE * needed:
            yield (
                f"others kept {use.sibling_busy_cores:.1f} of the {use.num_sibling_cores} hyperthreads busy that share "
                f"the cell's cores, more than {MAX_MISSING_SHARE:.0%} of its {needed} threads"
            )
        return
    idle = 1 - (use.own_cores + others) / num_cores
    if others / num_cores > MAX_OTHER_SHARE and idle < MIN_IDLE_SHARE:
        yield (
            f"{busy}: {max(0.0, idle):.0%} of them were idle, less than {MIN_IDLE_SHARE:.0%}, so that the "
            "thread that launches the GPU's work had to wait for a core"
        )


def list_unchecked_neighbours(inputs: ValidityInputs) -> Iterator[str]:
    if inputs.cell.device == "gpu" and not inputs.gpu_use:
        yield "other users of the GPU not looked for"
    for gpu in inputs.gpu_use:
        if not gpu.processes_visible or gpu.foreign_processes is None:
            yield f"processes of others on {gpu.uuid} cannot be seen here"
        elif gpu.foreign_memory_after_bytes is None:
            yield f"memory of others on {gpu.uuid} after the window not known"
        if gpu.memory_used_before_bytes is None:
            yield f"memory in use on {gpu.uuid} before the start not known"
        if inputs.is_under_mps:
            yield f"whose memory was in use on {gpu.uuid} before the start: MPS's server has some"
    use = inputs.cpu_use
    if use is None:
        yield "other processes on the cores and the CPU quota not observed"
    elif use.other_cores is None and use.affinity_other_cores is None:
        pressure = use.pressure_share if use.pressure_share is not None else use.machine_pressure_share
        waited = "" if pressure is None else f", in {pressure:.0%} of the window some thread waited for a core"
        yield f"other processes on the cores not observed{waited}"
    elif inputs.cell.device == "cpu":
        yield from _list_unchecked_hyperthreads(use, inputs.num_threads)


def find_others(use: CpuUse) -> tuple[float, int]:
    """Return the cores that others kept busy and how many there are: of the affinity, or else of the machine."""
    if use.affinity_other_cores is not None and use.num_affinity_cores is not None:
        return use.affinity_other_cores, use.num_affinity_cores
    return use.other_cores or 0.0, use.num_machine_cores


def count_missing_cores(use: CpuUse, needed: float) -> float:
    """Return how many of the `needed` cores others left none for; 0 or less where there were enough, or not known.

    A thread that the CPU quota stops needs no core meanwhile: others may fill it, and take nothing from the cell.
    """
    others, num_cores = find_others(use)
    stopped = (use.throttled_seconds or 0.0) / use.window_seconds
    return needed - stopped + others - num_cores


def is_short_of_cores(use: CpuUse, needed: float) -> bool:
    """Return whether others kept `needed` threads from their cores, by more than MAX_MISSING_SHARE of them."""
    return count_missing_cores(use, needed) > MAX_MISSING_SHARE * needed


def _list_unchecked_hyperthreads(use: CpuUse, num_threads: int) -> Iterator[str]:
    if use.sibling_busy_cores is None:
        yield "use of the hyperthreads that share the cell's cores not observed"
    physical, others = use.num_affinity_physical_cores, use.affinity_other_cores
    if physical is None or others is None:
        return
    bound = MAX_MISSING_SHARE * num_threads
    if others > bound and num_threads + others > physical + bound and num_threads < (use.num_affinity_cores or 0):
        yield (
            f"whether the {others:.1f} cores of others shared a physical core with the cell: its {num_threads} threads "
            f"are not pinned, and there are {physical} physical cores"
        )
