"""Kills runners at random moments, and says what was lost or done twice."""

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

from bench.schema import Run
from bench.store import Store, run_key
from fault_outcomes import FaultOutcome
from record_writers import make_writing_interpreter
from runner.local.hardware import plan_local_run
from runner.matrix.expansion import load_matrix
from warm_processes import Ending, WarmProcesses
from workspace import MATRIX, read_results

MAX_BEFORE = 3
"""Repeats that a runner may begin before it is killed, at a moment within the time that one takes, start included."""
Repeat = tuple[str, str, int]
"""run_id, cell_id and number."""


def kill_runners(folder: Path, tool: WarmProcesses, *, num_kills: int, seed: int) -> FaultOutcome:
    """Kill runners of one matrix again and again, then let one end."""
    outcome, moments = FaultOutcome(name="kill -9 of the runner"), random.Random(seed)
    log = folder / "log"
    (folder / "quick.yaml").write_text(MATRIX.replace("repeats: 2", f"repeats: {max(2, num_kills // 4)}"))
    plan = plan_local_run(load_matrix(str(folder / "quick.yaml")), gpu=None, run_id=None)
    make_writing_interpreter(folder, [planned.cell for planned in plan.cells], log=log)
    words = ["run", "quick.yaml", "--python", "./python", "--no-report"]
    store, pace, num_before = Store.open(f"file://{folder}/results"), 0.0, MAX_BEFORE
    while outcome.num_faults < num_kills:
        there, num_started = _name_records(store), len(_read_starts(log))
        begun, ending = time.monotonic(), None
        pid = tool.start("benchmatrix", words, folder, _make_variables(folder))
        while len(_read_starts(log)) < num_started + num_before and ending is None:
            ending = tool.wait(0.01)
        pace = (time.monotonic() - begun) / (num_before + 1) if num_before else pace
        _judge(ending or tool.kill_after(pid, moments.uniform(0.0, pace)), outcome)
        repeated = there & set(_read_starts(log)[num_started:])
        outcome.check(not repeated, f"measured though there was a record: {repeated}")
        num_before = moments.randrange(MAX_BEFORE + 1)
    ending = tool.call("benchmatrix", words, folder, _make_variables(folder))
    outcome.check(ending.exit_code == 0, f"the last runner ended with {ending.exit_code}: {ending.output[-800:]}")
    outcome.check_end(ending.exit_code, ending.output)
    _check_runs(store, outcome)
    return outcome


def _read_starts(log: Path) -> list[Repeat]:
    lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return [(run_id, cell_id, int(repeat)) for run_id, cell_id, repeat in lines]


def _name_records(store: Store) -> set[Repeat]:
    return {(result.run_id, result.cell_id, result.repeat) for result in read_results(store)}


def _make_variables(folder: Path) -> dict[str, str]:
    """Return the environment of a process, with a lock of its own: other runs on this machine are not concerned."""
    (folder / "lock").mkdir(exist_ok=True)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("BENCH_")}
    return inherited | {"BENCHMATRIX_LOCK_DIR": str(folder / "lock")}


def _judge(ending: Ending, outcome: FaultOutcome) -> None:
    """Count a kill, and check the words of a process that ended before it."""
    if ending.exit_code == -signal.SIGKILL:
        outcome.num_faults += 1
    else:
        outcome.facts["ended before the kill"] += 1
        outcome.check_end(ending.exit_code, ending.output)


def _check_runs(store: Store, outcome: FaultOutcome) -> None:
    results = read_results(store)
    planned = Counter(
        (run_id, cell.cell.cell_id, repeat)
        for run_id in store.list_run_ids()
        for cell in Run.model_validate_json(store.get(run_key(run_id))).cells
        for repeat in range(1, cell.repeats + 1)
    )
    found = Counter((result.run_id, result.cell_id, result.repeat) for result in results)
    outcome.check(found == planned, f"lost: {planned - found}; twice or of nobody: {found - planned}")
    statuses = Counter(result.status for result in results)
    outcome.check(set(statuses) == {"ok"}, f"statuses {statuses}")
    outcome.facts["repeats"] = sum(planned.values())
    outcome.facts["runs"] = len(store.list_run_ids())
