"""Finds the peak rate of this host's CPUs for a cell: calculated, and measured with the framework's matrix product.

The product is measured in the cell's own process before and after its timed window. Which figure a run's shares refer
to is for the collector to say, which sees all results of the host. Bandwidth is not measured: a CPU's roofline is that
of arithmetic alone.
"""

import gc
from collections.abc import Callable
from time import perf_counter

from bench.measure.harness import Workload, run_steps
from bench.measure.roofline import Peaks
from bench.probes.cpu import compare_cpu_counters, read_cpu_counters
from bench.probes.cpu_peak import calculate_peak
from bench.registry import FRAMEWORKS, MODELS
from bench.schema import Cell, HostPeak
from bench.verdicts.neighbours import is_short_of_cores

# From a size at which any CPU is done in an instant to one that fills many cores; more than that is no faster.
SIZES = (512, 1024, 2048, 4096)
# Products of each size: the fastest counts, and a busy machine leaves room for one now and then.
SECONDS_PER_SIZE = 0.25
MIN_PRODUCTS = 3
# Measurements in a row while others disturb them.
MAX_MEASUREMENTS = 2

BuildWorkload = Callable[[Cell], Workload]


def make_host_peak(cell: Cell, num_threads: int, *, before: float | None, after: float | None) -> HostPeak:
    theory = calculate_peak(cell.precision, num_threads)
    return HostPeak(
        framework=cell.framework,
        num_threads=num_threads,
        num_cores=theory.num_cores,
        flops_per_cycle=theory.flops_per_cycle,
        clock_hertz=theory.clock_hertz,
        theoretical_flops_per_second=theory.flops_per_second,
        before_flops_per_second=before,
        after_flops_per_second=after,
    )


def find_host_peaks(host: HostPeak) -> Peaks:
    measured = max(filter(None, (host.before_flops_per_second, host.after_flops_per_second)), default=None)
    if host.flops_per_second is None:
        source = "neither calculated nor measured"
    elif host.flops_per_second == measured:
        source = f"measured: the fastest matrix product in {host.framework}, {host.num_threads} threads"
    else:
        source = (
            f"calculated: {host.num_cores} cores x {host.flops_per_cycle} operations x "
            f"{(host.clock_hertz or 0) / 1e9:.2f} GHz"
        )
    return Peaks(flops_per_second=host.flops_per_second, bytes_per_second=None, cache_bytes=0, source=source)


def measure_undisturbed(cell: Cell, num_threads: int, build: BuildWorkload) -> float | None:
    return repeat_undisturbed(num_threads, lambda: measure_matrix_product(cell, build), MAX_MEASUREMENTS)


def repeat_undisturbed(num_threads: int, measure: Callable[[], float], max_measurements: int) -> float | None:
    """Return what `measure` does on so many threads; None if other processes kept them from their cores each time."""
    for _ in range(max_measurements):
        counters = read_cpu_counters()
        rate = measure()
        if not is_short_of_cores(compare_cpu_counters(counters, read_cpu_counters()), num_threads):
            return rate
    return None


def measure_matrix_product(cell: Cell, build: BuildWorkload) -> float:
    """Return the highest rate of a square matrix product in operations per second, over SIZES, as `cell` is run."""
    best = 0.0
    for size in SIZES:
        step_seconds = _time_product(build(make_product_cell(cell, size)))
        gc.collect()  # Keras's models are cycles, which keep their matrices
        best = max(best, 2 * size**3 / step_seconds)
        if 8 * step_seconds > SECONDS_PER_SIZE:  # what one product of the next size takes
            break
    return best


def make_product_cell(cell: Cell, size: int) -> Cell:
    fields = {
        "model": "matmul",
        "phase": MODELS["matmul"].phases[0],
        "mode": FRAMEWORKS[cell.framework].modes[0],
        "batch_size": 1,
        "input_size": size,
        "num_classes": None,
        "data_dir": None,
    }
    return cell.model_copy(update=fields)


def _time_product(workload: Workload) -> float:
    run_steps(workload, seconds=0)
    times: list[float] = []
    begin = start = perf_counter()
    while len(times) < MIN_PRODUCTS or start - begin < SECONDS_PER_SIZE:
        run_steps(workload, seconds=0)
        end = perf_counter()
        times.append(end - start)
        start = end
    return min(times)
