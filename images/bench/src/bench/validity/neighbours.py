"""Checks that nobody else used the device or the cores: contaminated."""

from bench.schema import CpuUse
from bench.validity.inputs import Found, ValidityInputs

# contaminated. A CUDA context alone takes more than this on any GPU; what a display or a driver keeps takes less.
# Bytes count where the processes behind them cannot be seen, as in most containers.
MAX_FOREIGN_BYTES = 100 * 2**20
# CPU cells: others may use the cores that this cell's threads leave free. A tenth of the cell's threads without a core
# is the size of what runs differ by anyway, and above what an idle desktop does.
MAX_MISSING_SHARE = 0.10
# GPU cells launch kernels from one thread, which sleeps and wakes. It finds a free core at once while any is idle: the
# load of others counts only where less than this share of the machine stays idle, 0.4 of eight cores. And they must
# have a part in it: a tenth of the machine, more than an idle desktop uses beside a cell that fills the cores itself.
MIN_IDLE_SHARE = 0.05
MAX_OTHER_SHARE = 0.10


def check_gpu_neighbours(inputs: ValidityInputs) -> Found:
    """Yield contaminated where others used a GPU of the cell before the start."""
    for gpu in inputs.gpu_use:
        if gpu.foreign_processes:
            pids = ", ".join(str(process.pid) for process in gpu.foreign_processes)
            yield "contaminated", f"{gpu.uuid} was computing for others before the start (process {pids})"
        elif (gpu.memory_used_before_bytes or 0) > MAX_FOREIGN_BYTES:
            used, bound = (value / 2**20 for value in (gpu.memory_used_before_bytes or 0, MAX_FOREIGN_BYTES))
            yield "contaminated", f"{used:.0f} MiB of {gpu.uuid} were in use before the start, more than {bound:.0f}"


def check_cpu_neighbours(inputs: ValidityInputs) -> Found:
    """Yield contaminated where others kept the cell's threads from a core during the window."""
    use = inputs.cpu_use
    busy = f"others kept {use.other_cores or 0.0:.1f} of {use.num_machine_cores} cores busy"
    if inputs.cell.device == "cpu":
        needed = inputs.num_threads  # they wait for the slowest among them
        if is_short_of_cores(use, needed):
            missing = count_missing_cores(use, needed)
            yield (
                "contaminated",
                f"{busy}: of the {needed} that the cell needs {missing:.1f} were missing, more than "
                f"{MAX_MISSING_SHARE:.0%}",
            )
        return
    others = (use.other_cores or 0.0) / use.num_machine_cores
    idle = 1 - use.own_cores / use.num_machine_cores - others
    if others > MAX_OTHER_SHARE and idle < MIN_IDLE_SHARE:
        yield (
            "contaminated",
            f"{busy}: {max(0.0, idle):.0%} of the machine were idle, less than {MIN_IDLE_SHARE:.0%}, so that the "
            "thread that launches the GPU's work had to wait for a core",
        )


def count_missing_cores(use: CpuUse, needed: float) -> float:
    """Return how many of the `needed` cores others left none for; 0 or less where there were enough, or not known."""
    return needed + (use.other_cores or 0.0) - use.num_machine_cores


def is_short_of_cores(use: CpuUse, needed: float) -> bool:
    """Return whether others kept `needed` threads from their cores, by more than MAX_MISSING_SHARE of them."""
    return count_missing_cores(use, needed) > MAX_MISSING_SHARE * needed
