"""Measures the calibration of this machine again and again, each time in a process of its own, and prints its spread.

docs/measurement.md says what is measured. Run it with an interpreter that has the framework; on a GPU:

    PYTHONPATH=images/bench/src .environments/pytorch-cuda/bin/python benchmarks/calibration_spread.py --device gpu

It says in one line per process what was measured and what it took, then by how much the processes differ.
"""

import argparse
import math
import statistics
import subprocess
import sys

from bench.frameworks.interface import load_framework
from bench.probes.cpu import count_threads, limit_library_threads
from bench.probes.machine import read_environment
from bench.registry import FRAMEWORKS
from bench.schema import Calibration, Cell
from bench.worker.observe import Observer
from bench.worker.request import Order

RATES = ("product_flops_per_second", "copy_bytes_per_second")


def calibrate_here(cell: Cell) -> Calibration | str:
    """Return the calibration as an attempt at the cell makes it, without its window; or why there is none."""
    num_threads = count_threads()
    limit_library_threads(num_threads)
    framework = load_framework(cell, num_threads)
    workload = framework.build_workload(cell)
    workload.run_step()
    workload.synchronize()
    order = Order(cell=cell, run_id="r", repeat=1, attempt="a", store_url="-")
    environment = read_environment(order, framework, num_threads, variables={})
    del workload
    observer = Observer(cell, num_threads)
    observer.calibrate(framework, environment)
    return observer.calibration or "; ".join(observer.failures)


def print_spread(calibrations: list[Calibration]) -> None:
    """Print the median of each rate, its standard deviation and its range over the processes."""
    for name in RATES:
        rates = [rate for calibration in calibrations if (rate := getattr(calibration, name)) is not None]
        if len(rates) > 1:
            deviation = statistics.stdev(map(math.log, rates))
            extent = max(rates) / min(rates) - 1
            print(
                f"{name}: median {statistics.median(rates):.4g}, sd {deviation:.2%}, range {extent:.2%}, n={len(rates)}"
            )


def main() -> None:
    """Start the processes, or be one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", default="pytorch", choices=sorted(FRAMEWORKS))
    parser.add_argument("--device", default="cpu", choices=["cpu", "gpu"])
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--once", action="store_true", help="be one of the processes")
    options = parser.parse_args()
    if options.once:
        mode = FRAMEWORKS[options.framework].modes[0]
        cell = Cell(
            model="conv6",
            framework=options.framework,
            device=options.device,
            phase="train",
            mode=mode,
            precision=options.precision,
            batch_size=8,
            input_size=64,
            num_classes=10,
        )
        found = calibrate_here(cell)
        print(found if isinstance(found, str) else found.model_dump_json())
        return
    calibrations = []
    for _ in range(options.repeats):
        words = [sys.executable, *sys.argv, "--once"]
        line = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip().splitlines()[-1]
        print(line, flush=True)
        if line.startswith("{"):
            calibrations.append(Calibration.model_validate_json(line))
    print_spread(calibrations)


if __name__ == "__main__":
    main()
