"""Runs, collects and reports on a disk that is full at one write after the other, and says what was lost.

Each command gets so many blocks, or names of files, more than are in use. It fails at the first write that needs more,
and the next one, which resumes it, gets a bit further.
"""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench.store import Store
from fault_outcomes import FaultOutcome
from record_writers import make_writing_interpreter
from runner.local.hardware import plan_local_run
from runner.matrix.expansion import load_matrix
from warm_processes import Ending, WarmProcesses
from workspace import name_repeats, read_results

MAX_MORE = 6
"""Blocks or names: a plan takes 2 and a record 2, each with folders and a staging file."""
NUM_REPEATS = 2
MATRIX = f"""
name: full
axes: {{batch_size: [1]}}
defaults: {{model: conv6, framework: pytorch, device: cpu, phase: train, num_steps: 1, repeats: {NUM_REPEATS}}}
"""
WRITERS = (
    "report {run} --output report",
    "report {run} --figure roofline --output drawn.svg",
    "audit study --run {run} --output claims.md",
    "forecast --plot forecast.svg",
    "audit nvidia-t4-resnet50 --run {run} --output audit.md",
)
"""Commands that write a page or a picture, or several."""
Resource = Literal["nr_blocks", "nr_inodes"]
RESOURCES: dict[Resource, str] = {"nr_blocks": "blocks", "nr_inodes": "names"}


@dataclass(frozen=True)
class SmallDisk:
    """A tmpfs whose size can be changed while it is in use."""

    place: Path

    def allow(self, resource: Resource, more: int | None) -> None:
        """Allow so many blocks or names more than are in use; None: as many as there is memory for."""
        use = os.statvfs(self.place)
        used = use.f_blocks - use.f_bfree if resource == "nr_blocks" else use.f_files - use.f_ffree
        limit = {"nr_blocks": 2**20, "nr_inodes": 2**20} | ({} if more is None else {resource: used + more})
        options = ",".join(f"{name}={value}" for name, value in limit.items())
        subprocess.run(["mount", "-o", f"remount,{options}", str(self.place)], check=True)


@contextmanager
def mount_small_disk(place: Path) -> Iterator[SmallDisk | None]:
    """Mount a tmpfs on a new folder `place`; None where this process may not."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"nr_blocks={2**20},nr_inodes={2**20}", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        yield None
        return
    try:
        yield SmallDisk(place)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill_disk(folder: Path, tool: WarmProcesses, disk: SmallDisk, *, num_faults: int, seed: int) -> FaultOutcome:
    """Give one command after the other too little disk, until so many failed for it; let each run end and check it."""
    squeeze = Squeeze(tool, disk, _make_variables(folder, disk), random.Random(seed), num_faults)
    outcome = squeeze.outcome
    while outcome.num_faults < num_faults:
        place, run_id = disk.place / f"w{outcome.facts['runs']}", f"full-{outcome.facts['runs']}"
        _set_up(folder, place)
        run = ["run", "full.yaml", "--python", "./python", "--no-report", "--run-id", run_id]
        # Where the disk had room for the runner's record of a failure and not for the cell's, it is measured again.
        writer = WRITERS[outcome.facts["runs"] % len(WRITERS)].format(run=run_id).split()
        tables = ["report", run_id, "--format", "csv,parquet", "--output", "tables"]
        for words in (run, [*run, "--retry-failed"], writer, tables):
            squeeze.insist(words, place)
        results = read_results(Store.open(f"file://{place}/results"))
        ok = name_repeats([result for result in results if result.status == "ok"])
        outcome.check(len(ok) == NUM_REPEATS == len(set(ok)), f"records that are ok: {ok}")
        left = [path.name for path in place.rglob(".benchmatrix-*")]
        outcome.check(not left, f"temporary files are left: {left}")
        outcome.facts["runs"] += 1
        outcome.facts["repeats"] += len(set(ok))
        shutil.rmtree(place)
    return outcome


def _make_variables(folder: Path, disk: SmallDisk) -> dict[str, str]:
    """Return the environment of the commands: what they write elsewhere than in their folder is on the disk, too."""
    (folder / "lock").mkdir()
    return os.environ | {"TMPDIR": str(disk.place), "BENCHMATRIX_LOCK_DIR": str(folder / "lock")}


def _set_up(folder: Path, place: Path) -> None:
    """Make a folder on the small disk, with a matrix and an interpreter whose log is elsewhere."""
    place.mkdir()
    (place / "full.yaml").write_text(MATRIX)
    plan = plan_local_run(load_matrix(str(place / "full.yaml")), gpu=None, run_id=None)
    make_writing_interpreter(place, [planned.cell for planned in plan.cells], log=folder / "log")


@dataclass
class Squeeze:
    """Gives commands too little disk."""

    tool: WarmProcesses
    disk: SmallDisk
    variables: dict[str, str]
    chance: random.Random
    num_faults: int
    outcome: FaultOutcome = field(default_factory=lambda: FaultOutcome(name="full disk"))

    def insist(self, words: Sequence[str], place: Path) -> None:
        """Give a command again and again, each time with a few blocks or names more, and in the end with room."""
        is_over = False
        while not is_over and self.outcome.num_faults < self.num_faults:
            resource: Resource = self.chance.choice(("nr_blocks", "nr_inodes"))
            self.disk.allow(resource, self.chance.randrange(MAX_MORE))
            before = _read_documents(place)
            ending = self.tool.call("benchmatrix", words, place, self.variables)
            self.disk.allow(resource, None)
            is_over = ending.exit_code in (0, 1)  # 1: a repeat has a record that is not ok
            self._judge(words[0], resource, ending)
            self.outcome.check(before.items() <= _read_documents(place).items(), "a document is gone or changed")
        ending = self.tool.call("benchmatrix", words, place, self.variables)
        self.outcome.check_end(ending.exit_code, ending.output)
        is_ok = ending.exit_code == 0 or (words[0] == "run" and words[-1] != "--retry-failed")
        self.outcome.check(is_ok, f"with room {words} ended with {ending.exit_code}: {ending.output[-800:]}")

    def _judge(self, command: str, resource: Resource, ending: Ending) -> None:
        outcome = self.outcome
        outcome.check_end(ending.exit_code, ending.output)
        if ending.exit_code not in (0, 1):
            outcome.num_faults += 1
            outcome.facts[f"of {command} for want of {RESOURCES[resource]}"] += 1
            is_named = "full" in ending.output or "space" in ending.output
            outcome.check(is_named, f"the disk is not named: {ending.output[-600:]}")


def _read_documents(place: Path) -> dict[str, bytes]:
    """Return every document of the runs in the store; what a writer has not finished is none."""
    return {str(path): path.read_bytes() for path in (place / "results" / "runs").rglob("*.json")}
