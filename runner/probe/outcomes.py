"""Read from the record of a trial whether its batch fits, and how much memory it took."""

from bench.schema import Result
from runner.probe.batch_search import TrialOutcome

_OUTCOMES: dict[str, TrialOutcome] = {"ok": "fits", "oom": "out-of-memory", "timeout": "time-limit"}
# How a message begins, and what is in it, where the host's memory ran out: Python's and NumPy's error; PyTorch's
# allocator on CPUs, a tensor that TensorFlow keeps on the CPU, its allocator of host memory for copies to the GPU.
HOST_ERRORS = ("MemoryError", "_ArrayMemoryError")
HOST_WORDS = ("DefaultCPUAllocator", "device:CPU:", "_host_bfc")


def name_outcome(result: Result) -> TrialOutcome:
    """Return what the record of a trial says of its batch.

    A GPU cell that ran out of the host's memory is a failure: it says nothing about the GPU's. A process that died
    without a record of its own ran out of the host's.
    """
    is_on_gpu, message = result.cell.device == "gpu", result.error.message if result.error else ""
    is_of_host = message.startswith(HOST_ERRORS) or any(words in message for words in HOST_WORDS)
    if result.status == "oom" and is_on_gpu and (is_of_host or result.written_by == "runner"):
        return "failure"
    return _OUTCOMES.get(result.status, "failure")


def read_peak_bytes(result: Result) -> int | None:
    """Return the peak memory of the process on a CPU; on a GPU what the allocator reserved or, without that, allocated.

    None if the record has no memory.
    """
    memory = result.memory
    if memory is None:
        return None
    if result.cell.device == "cpu":
        return memory.peak_rss_bytes
    reserved = memory.peak_memory_reserved_bytes
    return memory.peak_memory_allocated_bytes if reserved is None else reserved


def read_needed_bytes(result: Result) -> int | None:
    """Return the memory that the batch needed: on a GPU what was allocated, on a CPU what the process took."""
    memory = result.memory
    if memory is None:
        return None
    return memory.peak_rss_bytes if result.cell.device == "cpu" else memory.peak_memory_allocated_bytes


def read_obtainable_bytes(result: Result, memory_limit_bytes: int | None) -> int | None:
    """Return what the batch could have taken at most: on a CPU the limit, on a GPU what the process held and was free.

    Of several GPUs the one with the least free memory counts.
    """
    if result.cell.device == "cpu":
        return memory_limit_bytes
    free = [use.memory_free_after_bytes for use in result.gpu_use]
    held = read_peak_bytes(result)
    if held is None or not free or None in free:
        return None
    return held + min(number for number in free if number is not None)
