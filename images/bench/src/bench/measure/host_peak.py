"""Finds the peak rate of this host's CPUs for a cell: calculated, and measured with the framework's matrix product.

The product is measured in the cell's own process before and after its timed window. Which figure a run's shares refer
to is for the collector to say, which sees all results of the host. Bandwidth is not measured: a CPU's roofline is that
of arithmetic alone.
"""

import gc
from collections.abc import Callable, Collection
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time
from typing import TypeVar

from bench.measure.harness import Workload, run_steps
from bench.measure.roofline import Peaks
from bench.probes.cpu import (
    CPUINFO,
    SYSTEM_CPU,
    compare_cpu_counters,
    list_physical_cores,
    parse_cpuinfo,
    read_affinity,
    read_cpu_counters,
)
from bench.registry import EIGHT_BITS, FRAMEWORKS, MODELS
from bench.schema import Cell, HostPeak, Precision
from bench.verdicts.checks import is_short_of_cores

# From a size at which any CPU is done in an instant to one that fills many cores; more than that is no faster.
SIZES = (512, 1024, 2048, 4096)
# Products of each size: the fastest counts, and a busy machine leaves room for one now and then. A size whose product
# takes longer than that is left out.
SECONDS_PER_SIZE, MIN_PRODUCTS, MAX_PRODUCT_SECONDS = 0.1, 3, 0.25
# Measurements in a row while others disturb them.
MAX_MEASUREMENTS = 2

# Float32 operations of one core in one cycle: values of a vector register x two units x two for a multiply-add (A. Fog,
# "The microarchitecture of Intel, AMD and VIA CPUs"). /proc/cpuinfo does not show the number of units: some Xeons have
# one for AVX-512, and reach half of this.
AVX512_FLOPS, FMA_FLOPS, AVX_FLOPS, SSE_FLOPS = 64, 32, 16, 8
# Families of AMD whose units are narrower than their registers (AMD's Software Optimization Guides for families 17h
# and 19h): Zen and Zen+ (family 17h before model 30h) have units of 128 bits, Zen 4 (19h, with AVX-512) of 256.
ZEN, ZEN_3_AND_4, FIRST_ZEN_2_MODEL = 0x17, 0x19, 0x30
# A tile product of AMX is 16 x 16 x 32 multiply-adds in 16 cycles, in both half precisions (Intel 64 and IA-32
# Architectures Optimization Reference Manual, chapter on AMX).
AMX_FLOPS = 1024
# cpuinfo's flags of units for half precision: of tiles, and of vectors, which do twice the operations of float32.
TILE_FLAGS: dict[Precision, str] = {"bf16": "amx_bf16", "fp16": "amx_fp16"}
VECTOR_FLAGS: dict[Precision, str] = {"bf16": "avx512_bf16", "fp16": "avx512_fp16"}

T = TypeVar("T")
BuildWorkload = Callable[[Cell], Workload]


def make_host_peak(
    cell: Cell,
    num_threads: int,
    before: tuple[float, float] | None,
    after: tuple[float, float] | None,
    *,
    cpuinfo: Path = CPUINFO,
    system_cpu: Path = SYSTEM_CPU,
) -> HostPeak:
    """Return the peak by what `measure_matrix_product` returned `before` the window and `after` it."""
    allowed = read_affinity()
    first_processor = cpuinfo.read_text().strip().split("\n\n")[0] if cpuinfo.exists() else ""
    num_cores = min(num_threads, len(list_physical_cores(allowed, system_cpu) or allowed))
    flops_per_cycle = find_flops_per_cycle(parse_cpuinfo(first_processor), cell.precision)
    clock_hertz = _read_highest_clock(allowed, cpuinfo, system_cpu)
    theoretical = num_cores * flops_per_cycle * clock_hertz if flops_per_cycle and clock_hertz else None
    return HostPeak(
        framework=cell.framework,
        num_threads=num_threads,
        num_cores=num_cores,
        flops_per_cycle=flops_per_cycle,
        clock_hertz=clock_hertz,
        theoretical_flops_per_second=theoretical,
        before_flops_per_second=before and before[0],
        after_flops_per_second=after and after[0],
        busy_cores=max((busy for _, busy in filter(None, (before, after))), default=None),
    )


def find_flops_per_cycle(fields: dict[str, str], precision: Precision) -> int | None:
    flags = set(fields.get("flags", "").split())
    if "sse2" not in flags:
        return None
    if TILE_FLAGS.get(precision) in flags:
        return AMX_FLOPS
    widths = (("avx512f", AVX512_FLOPS), ("fma", FMA_FLOPS), ("avx", AVX_FLOPS), ("sse2", SSE_FLOPS))
    width = next(flops for flag, flops in widths if flag in flags)
    if fields.get("vendor_id") == "AuthenticAMD":
        family, model = int(fields.get("cpu family", 0)), int(fields.get("model", 0))
        narrow = AVX_FLOPS if family == ZEN and model < FIRST_ZEN_2_MODEL else FMA_FLOPS
        width = min(width, narrow) if family in (ZEN, ZEN_3_AND_4) else width
    return 2 * width if VECTOR_FLAGS.get(precision) in flags else width


def _read_highest_clock(allowed: Collection[int], cpuinfo: Path, system_cpu: Path) -> float | None:
    """Return the highest clock in Hz that cpufreq names for the CPUs `allowed`, or /proc/cpuinfo for any."""
    maxima = [system_cpu / f"cpu{cpu}" / "cpufreq" / "cpuinfo_max_freq" for cpu in allowed]
    clocks = [1e3 * int(path.read_text()) for path in maxima if path.exists()]
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    clocks += [1e6 * float(line.partition(":")[2]) for line in lines if line.startswith("cpu MHz")]
    return max((clock for clock in clocks if clock > 0), default=None)


def find_host_peaks(host: HostPeak | None) -> Peaks:
    if host is None:
        return Peaks(source="could not be read")
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
    return Peaks(flops_per_second=host.flops_per_second, source=source)


def repeat_undisturbed(
    num_threads: int, measure: Callable[[], T], max_measurements: int = MAX_MEASUREMENTS
) -> T | None:
    """Return what `measure` does on so many threads; None if other processes kept them from their cores each time."""
    for _ in range(max_measurements):
        counters = read_cpu_counters()
        rate = measure()
        if not is_short_of_cores(compare_cpu_counters(counters, read_cpu_counters()), num_threads):
            return rate
    return None


def measure_matrix_product(cell: Cell, build: BuildWorkload) -> tuple[float, float]:
    """Return the highest rate of square products over SIZES in FLOP/s, and how many cores the largest kept busy."""
    best = busy_cores = 0.0
    for size in SIZES:
        workload = build(make_product_cell(cell, size))
        run_steps(workload, seconds=0)
        ends, cpu_seconds = [perf_counter()], process_time()
        while len(ends) <= MIN_PRODUCTS or ends[-1] - ends[0] < SECONDS_PER_SIZE:
            run_steps(workload, seconds=0)
            ends.append(perf_counter())
        busy_cores = (process_time() - cpu_seconds) / (ends[-1] - ends[0])
        step_seconds = min(end - start for start, end in pairwise(ends))
        best = max(best, 2 * size**3 / step_seconds)
        if 8 * step_seconds > MAX_PRODUCT_SECONDS:  # what one product of the next size takes
            break
    del workload
    gc.collect()  # Keras's models are cycles, which keep their matrices; it takes 0.2 s with a framework loaded
    return best, busy_cores


def make_product_cell(cell: Cell, size: int) -> Cell:
    fields = {
        "model": "matmul",
        "phase": MODELS["matmul"].phases[0],
        "precision": "bf16" if cell.precision in EIGHT_BITS else cell.precision,
        "mode": FRAMEWORKS[cell.framework].modes[0],
        "batch_size": 1,
        "input_size": size,
        "num_classes": None,
        "data_dir": None,
    }
    return cell.model_copy(update=fields)
