"""Injects faults of every kind, a hundred of each by default, and says whether anything was lost or done twice.

python benchmarks/faults.py
python benchmarks/faults.py --kind runner --times 20 --seed 7
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from answer_faults import FAULTS, FaultyStore, suffer_answers  # noqa: E402
from fault_outcomes import FaultOutcome  # noqa: E402
from full_disk import fill_disk, mount_small_disk  # noqa: E402
from kill_faults import kill_collectors, kill_entry_points, kill_runners  # noqa: E402
from warm_processes import WarmProcesses  # noqa: E402

Program = Callable[[Path, int, int], list[FaultOutcome]]
"""Takes an empty folder, how many faults of each kind, and a seed."""


def kill(kind: Callable[..., FaultOutcome]) -> Program:
    """Return the program that kills processes of one kind."""

    def run(folder: Path, times: int, seed: int) -> list[FaultOutcome]:
        tool = WarmProcesses(folder)
        try:
            return [kind(folder, tool, num_kills=times, seed=seed)]
        finally:
            tool.stop()

    return run


def fill(folder: Path, times: int, seed: int) -> list[FaultOutcome]:
    """Run commands that fail for want of disk."""
    with mount_small_disk(folder / "disk") as disk:
        if disk is None:
            print("full disk: SKIPPED, no tmpfs can be mounted here; it takes root")
            return []
        tool = WarmProcesses(folder)
        try:
            return [fill_disk(folder, tool, disk, num_faults=times, seed=seed)]
        finally:
            tool.stop()


def lie(folder: Path, times: int, seed: int) -> list[FaultOutcome]:
    """Make the answers of an S3 server faulty in every way."""
    store = FaultyStore(folder)
    store.start()
    try:
        return [suffer_answers(store, fault, num_faults=times, seed=seed) for fault in FAULTS]
    finally:
        store.stop()


PROGRAMS: dict[str, Program] = {
    "runner": kill(kill_runners),
    "collector": kill(kill_collectors),
    "entry-point": kill(kill_entry_points),
    "disk": fill,
    "answers": lie,
}


def main() -> None:
    """Print one line for each kind of fault. Exit with 1 if anything was lost, done twice, or said in the wrong way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=sorted(PROGRAMS), action="append", help="may be given more than once")
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    is_sound = True
    for kind in arguments.kind or PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            for outcome in PROGRAMS[kind](Path(folder), arguments.times, arguments.seed):
                print(outcome.describe(), flush=True)
                is_sound = is_sound and not outcome.problems
    sys.exit(0 if is_sound else 1)


if __name__ == "__main__":
    main()
