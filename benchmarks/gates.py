"""Compares the tool's own speed with yardsticks, side by side in one run; exits with 1 where a ratio leaves its range.

    .venv/bin/python benchmarks/gates.py [NAME ...]

gates.yaml says what each ratio is, its range, and the runs that the range comes from. A ratio is the median of its
turns. What lacks its ground (a control plane, PyTorch's environment) is left out, and said to be.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

import yaml
from pydantic import BaseModel, ConfigDict

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "cluster")]

import collect  # noqa: E402
import start_time  # noqa: E402
from cluster_scale import compare_submission  # noqa: E402
from cluster_setup import start_plane  # noqa: E402
from synthetic_runs import Size, put_run  # noqa: E402

from bench.store import Store  # noqa: E402
from control_plane import find_assets  # noqa: E402

NUM_TURNS = 5
NUM_SUBMISSION_TURNS = 15
"""Turns of 300 Jobs on busy cores gave 0.30 to 1.84, medians of 5 of them 0.76 to 1.29, of 15 0.80 to 1.05."""
NUM_CELLS = 300
"""On a cluster and on the page."""
NUM_RESULTS = 2000
PYTORCH = ROOT / ".environments" / "pytorch-cpu" / "bin" / "python"
LIBRARIES_OF_START = "import typer, rich.console"
LIBRARIES_OF_PAGE = "import altair, jinja2, pandas, scipy.stats, vl_convert"


class Gate(BaseModel):
    """One ratio, as gates.yaml has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ratio: str
    """What is divided by what."""
    low: float
    high: float
    source: str
    """The runs that the range comes from."""


class GroundMissingError(Exception):
    """What a gate needs is not on this machine."""


def measure_harness() -> list[float]:
    if not PYTORCH.exists():
        raise GroundMissingError(f"no {PYTORCH.relative_to(ROOT)}: `make environments` installs it")
    cell = ("--models", "resnet18", "--phases", "infer", "--batch-size", "4")
    command = [PYTORCH, ROOT / "benchmarks" / "harness_overhead.py", *cell, "--turns", str(NUM_TURNS), "--json"]
    source = str(ROOT / "images" / "bench" / "src")
    done = subprocess.run(command, env={"PYTHONPATH": source}, check=True, capture_output=True, text=True)
    ratios: list[float] = json.loads(done.stdout.splitlines()[-1])
    return ratios


def measure_submission() -> list[float]:
    if (assets := find_assets()) is None:
        raise GroundMissingError("no control plane: see tests/control_plane.py")
    with tempfile.TemporaryDirectory() as name, start_plane(Path(name), assets, has_stock_limits=False) as plane:
        return compare_submission(NUM_CELLS, NUM_SUBMISSION_TURNS, plane, Store.open(f"file://{name}/store"))


def measure_collection() -> list[float]:
    return collect.measure(NUM_RESULTS, NUM_TURNS, None)["first_over_rclone"]


def measure_page() -> list[float]:
    with tempfile.TemporaryDirectory() as name:
        url = f"file://{name}/store"
        run = put_run(Store.open(url), Size(num_cells=NUM_CELLS))
        command = [sys.executable, ROOT / "benchmarks" / "report.py", "--render", url, run.run_id, f"{name}/page.html"]
        variables = os.environ | start_time.WRITES_BYTECODE
        ratios = []
        for _ in range(NUM_TURNS + 1):
            libraries = start_time.measure_program(LIBRARIES_OF_PAGE) / 1e3
            done = subprocess.run(command, env=variables, check=True, capture_output=True, text=True)
            ratios.append(json.loads(done.stdout)["render"] / libraries)
        return ratios[1:]  # the first turn writes bytecode


def measure_start() -> list[float]:
    ratios = [
        start_time.measure(("--help",), "") / start_time.measure_program(LIBRARIES_OF_START)
        for _ in range(NUM_TURNS + 1)
    ]
    return ratios[1:]  # the first turn writes bytecode


MEASURES: Mapping[str, Callable[[], list[float]]] = {
    "start": measure_start,
    "page": measure_page,
    "collect": measure_collection,
    "submit": measure_submission,
    "harness": measure_harness,
}


def main() -> None:
    """Print a line for each gate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MEASURES)}; default: all")
    names = parser.parse_args().names or list(MEASURES)
    text = (ROOT / "benchmarks" / "gates.yaml").read_text(encoding="utf-8")
    gates = {name: Gate.model_validate(fields) for name, fields in yaml.safe_load(text).items()}
    is_passed = True
    for name in names:
        gate = gates[name]
        try:
            ratios = MEASURES[name]()
        except GroundMissingError as reason:
            print(f"{name}: left out: {reason}", flush=True)
            continue
        ratio = median(ratios)
        is_within = gate.low <= ratio <= gate.high
        is_passed &= is_within
        turns = f"turns {min(ratios):.3f} to {max(ratios):.3f}"
        outcome = "within" if is_within else "OUTSIDE"
        print(f"{name}: {ratio:.3f} ({turns}), {outcome} {gate.low} to {gate.high}: {gate.ratio}", flush=True)
    sys.exit(0 if is_passed else 1)


if __name__ == "__main__":
    main()
