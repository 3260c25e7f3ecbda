"""Measures the peak rate of this host's CPUs with a framework's matrix product, once per boot.

The figure is kept in a small file, so that every cell of a run is compared with the same one: the best of all
frameworks on this host with as many threads in this precision. Bandwidth is not measured: a CPU's roofline is that of
arithmetic alone.
"""

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter

from bench.harness import Workload, run_steps
from bench.peaks import Peaks
from bench.probes.cpu import read_cpu_model
from bench.probes.cpu_use import compare_cpu_counters, read_cpu_counters
from bench.registry import FRAMEWORKS, MODELS
from bench.schema import Cell
from bench.validity.neighbours import is_short_of_cores

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# From a size at which any CPU is done in an instant to one that fills many cores; more than that is no faster.
SIZES = (512, 1024, 2048, 4096)
# Products of each size: the fastest counts, and a busy machine leaves room for one now and then.
SECONDS_PER_SIZE = 0.25
MIN_PRODUCTS = 3
# Measurements in a row while the cell remains faster than the peak, or others disturb them.
MAX_MEASUREMENTS = 3

BuildWorkload = Callable[[Cell], Workload]


def find_host_peaks(cell: Cell, num_threads: int, achieved_flops_per_second: float, build: BuildWorkload) -> Peaks:
    """Return the peak of this host for `cell`; measures it where this framework has not, or where `cell` surpassed it.

    A figure taken while others kept the threads from their cores is too low, and counts nowhere. Without any other the
    peak is not known.
    """
    path = locate_cache()
    host = "/".join((_read_boot_id(), read_cpu_model(), f"{num_threads} threads", cell.precision))
    known = read_cache(path)
    peaks = known.setdefault(host, {})
    for _ in range(MAX_MEASUREMENTS):
        if cell.framework in peaks and max(peaks.values()) >= achieved_flops_per_second:
            break
        rate = measure_undisturbed(cell, num_threads, build)
        if rate is None:
            continue
        peaks[cell.framework] = max(peaks.get(cell.framework, 0.0), rate)
        with suppress(OSError):  # nowhere to write, as in some containers: every cell measures for itself
            write_cache(path, known)
    if not peaks:
        source = "not measured: other processes kept the cores busy"
        return Peaks(flops_per_second=None, bytes_per_second=None, cache_bytes=0, source=source)
    framework = max(peaks, key=peaks.__getitem__)
    source = f"measured: the fastest matrix product on this host, {num_threads} threads, in {framework}"
    return Peaks(flops_per_second=peaks[framework], bytes_per_second=None, cache_bytes=0, source=source)


def measure_undisturbed(cell: Cell, num_threads: int, build: BuildWorkload) -> float | None:
    """Return the rate of `measure_matrix_product`; None if other processes kept the threads from their cores."""
    counters = read_cpu_counters()
    rate = measure_matrix_product(cell, build)
    use = compare_cpu_counters(counters, read_cpu_counters())
    return None if is_short_of_cores(use, num_threads) else rate


def measure_matrix_product(cell: Cell, build: BuildWorkload) -> float:
    """Return the highest rate of a square matrix product in operations per second, over SIZES, as `cell` is run."""
    best = 0.0
    for size in SIZES:
        step_seconds = _time_product(build(_make_product_cell(cell, size)))
        best = max(best, 2 * size**3 / step_seconds)
        if 8 * step_seconds > SECONDS_PER_SIZE:  # what one product of the next size takes
            break
    return best


def locate_cache() -> Path:
    """Return the file of measured peaks: in the user's cache, or with the temporary files where there is no home."""
    cache = os.environ.get("XDG_CACHE_HOME")
    folder = Path(cache) if cache else Path(os.path.expanduser("~/.cache"))
    if not os.access(folder if folder.exists() else folder.parent, os.W_OK):
        folder = Path(tempfile.gettempdir())
    return folder / "benchmatrix" / "host-peaks.json"


def read_cache(path: Path) -> dict[str, dict[str, float]]:
    """Return the kept peaks, by host and framework; none where the file is missing or damaged."""
    try:
        known = json.loads(path.read_text())
        return {str(host): {str(name): float(rate) for name, rate in rates.items()} for host, rates in known.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def write_cache(path: Path, known: dict[str, dict[str, float]]) -> None:
    """Keep the peaks; a reader finds the old file or the new one, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        json.dump(known, file, indent=1)
    Path(file.name).replace(path)


def _make_product_cell(cell: Cell, size: int) -> Cell:
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
    """Return the seconds of the fastest product; the first, which may compile, is not counted."""
    run_steps(workload, seconds=0)
    times: list[float] = []
    begin = start = perf_counter()
    while len(times) < MIN_PRODUCTS or start - begin < SECONDS_PER_SIZE:
        run_steps(workload, seconds=0)
        end = perf_counter()
        times.append(end - start)
        start = end
    return min(times)


def _read_boot_id() -> str:
    return BOOT_ID.read_text().strip() if BOOT_ID.exists() else "unknown boot"
