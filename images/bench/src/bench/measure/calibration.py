"""Calibrates the machine: measures work that is the same for every cell, after everything else of the attempt.

So machines can be held against each other that measured different cells. It runs when the window and all passes are
over, so that it can change none of them: neither their clocks and temperatures nor their peaks of memory. On a CPU the
matrix product is that of bench.measure.host_peak, around the window.
"""

from collections.abc import Sequence
from time import perf_counter

from bench.measure.harness import run_steps
from bench.measure.host_peak import BuildWorkload, make_product_cell, repeat_undisturbed
from bench.measure.passes import run_pipelined
from bench.measure.roofline import find_gpu_peaks
from bench.probes.cuda import choose_gpu_copy_bytes, measure_gpu_copy
from bench.probes.memory import choose_copy_bytes, measure_memory_copy, read_available_bytes, read_cache_bytes
from bench.schema import Calibration, Cell

MAX_MEASUREMENTS = 1
"""Of the host's memory, while others disturb them: the next attempt on the machine measures it too."""
PRODUCT_SIZE = 4096
"""Of the GPU's square matrices: 0.14 TFLOP, which takes 17 ms at a T4's peak in float32 and 0.14 ms at an H200's in
bf16. Larger ones would take longer to be drawn and copied to the GPU than to be multiplied."""
PRODUCT_SECONDS = 0.2
"""Products go on for so long, after half as long that does not count: the GPU may have fallen idle after the passes,
and raises its clocks within tenths of a second (bench.measure.passes)."""


def calibrate_cpu(num_threads: int) -> Calibration:
    """Return the bandwidth of the host's memory for so many threads; without it where there is no room or no quiet."""
    start = perf_counter()
    cache_bytes = read_cache_bytes()
    copy_bytes = choose_copy_bytes(cache_bytes, read_available_bytes())
    rate = None
    if copy_bytes is not None:
        rate = repeat_undisturbed(num_threads, lambda: measure_memory_copy(num_threads, copy_bytes), MAX_MEASUREMENTS)
    return Calibration(
        copy_bytes_per_second=rate,
        copy_bytes=copy_bytes,
        cache_bytes=cache_bytes,
        num_threads=num_threads,
        seconds=perf_counter() - start,
    )


def calibrate_gpu(cell: Cell, build: BuildWorkload, gpu_names: Sequence[str]) -> Calibration:
    """Return the rate of a matrix product in the cell's precision and the bandwidth of the memory of its GPU.

    `gpu_names`: as NVML gives them. Raises whatever the framework or CUDA raise, such as that there is no room.
    """
    start = perf_counter()
    cache_bytes = find_gpu_peaks(gpu_names, cell.precision).cache_bytes
    copy_bytes = choose_gpu_copy_bytes(cache_bytes)
    product = _measure_product(cell, build)
    return Calibration(
        product_flops_per_second=product,
        copy_bytes_per_second=measure_gpu_copy(copy_bytes),
        copy_bytes=copy_bytes,
        cache_bytes=cache_bytes or None,
        seconds=perf_counter() - start,
    )


def _measure_product(cell: Cell, build: BuildWorkload) -> float:
    workload = build(make_product_cell(cell, PRODUCT_SIZE))
    run_steps(workload, seconds=PRODUCT_SECONDS / 2)  # the first may compile
    begin = perf_counter()
    run_steps(workload, seconds=0)
    step_seconds = perf_counter() - begin
    window = run_pipelined(workload, PRODUCT_SECONDS, step_seconds)
    return 2 * PRODUCT_SIZE**3 / window.step_seconds
