"""Kills runners, collectors and measuring processes at random moments, and says what was lost or done twice."""

import hashlib
import os
import random
import re
import signal
import time
from collections import Counter
from pathlib import Path

import pandas as pd

from bench.order import Order
from bench.schema import Cell, InvalidDocumentError, Run, read_result
from bench.store import Store, parse_result_key, results_prefix, run_key
from collector.results.load import load_run
from factories import make_cell
from fault_outcomes import FaultOutcome
from record_writers import make_writing_interpreter
from runner.local.planning import plan_local_run
from runner.matrix.expansion import load_matrix
from stub_framework import TEN_STEPS
from synthetic_runs import Size, put_run
from warm_processes import Ending, WarmProcesses
from workspace import MATRIX, read_results

MAX_BEFORE = 3
"""Repeats that a runner may begin before it is killed, at a moment within the time that one takes, start included."""
NUM_COLLECTED_CELLS = 30
Repeat = tuple[str, str, int]
"""run_id, cell_id and number."""
BEYOND = 1.1
"""Of the time that an undisturbed process takes: a few are killed when they are at the end, or not at all."""


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
    """Note what is wrong with the runs, of which a new one begins where the one before is whole."""
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


def kill_collectors(folder: Path, tool: WarmProcesses, *, num_kills: int, seed: int) -> FaultOutcome:
    """Kill collections of one run, each second of which makes the data set anew, and read the run after each."""
    outcome, moments = FaultOutcome(name="kill -9 of the collector"), random.Random(seed)
    store = Store.open(f"file://{folder}/results")
    run = put_run(store, Size(num_cells=NUM_COLLECTED_CELLS))
    raw = _hash_files(folder / "results" / "runs")
    expected = load_run(store, run.run_id).results
    words, variables = ["collect", run.run_id, "--output"], _make_variables(folder)
    tool.call("benchmatrix", ["--version"], folder, variables)  # it has imported everything now
    begun = time.monotonic()
    _check_whole(tool.call("benchmatrix", [*words, "whole"], folder, variables), outcome)
    span = BEYOND * (time.monotonic() - begun)
    whole = _hash_files(folder / "whole")
    while outcome.num_faults < num_kills:
        rebuild = ["--rebuild"] if outcome.num_faults % 2 else []
        pid = tool.start("benchmatrix", [*words, "killed", *rebuild], folder, variables)
        _judge(tool.kill_after(pid, moments.uniform(0.0, span)), outcome)
        outcome.check(_hash_files(folder / "results" / "runs") == raw, "raw results changed")
        pd.testing.assert_frame_equal(load_run(store, run.run_id).results, expected)
        found = {name: digest for name, digest in _hash_files(folder / "killed").items() if _is_visible(name)}
        outcome.check(found.items() <= whole.items(), f"files cut or mixed: {sorted(found.items() - whole.items())}")
    _check_whole(tool.call("benchmatrix", [*words, "killed"], folder, variables), outcome)
    left = sorted(name for name in _hash_files(folder / "killed") if not _is_visible(name))
    outcome.facts["temporary files left by killed collectors"] = len(left)
    outcome.facts["results"] = len(expected)
    return outcome


def _check_whole(ending: Ending, outcome: FaultOutcome) -> None:
    outcome.check(ending.exit_code == 0, f"undisturbed, it ended with {ending.exit_code}: {ending.output[-1500:]}")
    outcome.check_end(ending.exit_code, ending.output)


def _hash_files(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def _is_visible(name: str) -> bool:
    return not Path(name).name.startswith(".")


def kill_entry_points(folder: Path, tool: WarmProcesses, *, num_kills: int, seed: int) -> FaultOutcome:
    """Kill the entry point, started as in a container, in attempts at one repeat; let the last attempt end."""
    outcome, moments = FaultOutcome(name="kill -9 of the entry point"), random.Random(seed)
    store, cell = Store.open(f"file://{folder}/results"), make_cell(**TEN_STEPS)
    _check_ok(tool.call("bench", [], folder, _order(folder, cell, "first")), outcome)
    begun = time.monotonic()
    _check_ok(tool.call("bench", [], folder, _order(folder, cell, "second")), outcome)
    span = BEYOND * (time.monotonic() - begun)
    ended = {"first", "second"}
    while outcome.num_faults < num_kills:
        attempt = f"k{outcome.num_faults}-{len(ended)}"
        pid = tool.start("bench", [], folder, _order(folder, cell, attempt))
        ending = tool.kill_after(pid, moments.uniform(0.0, span))
        if ending.exit_code == -signal.SIGKILL:
            outcome.num_faults += 1
        else:
            _check_ok(ending, outcome)
            ended.add(attempt)
            outcome.facts["ended before the kill"] += 1
        _check_attempts(store, ended, attempt, outcome)
    _check_ok(tool.call("bench", [], folder, _order(folder, cell, "last")), outcome)
    _check_attempts(store, ended | {"last"}, "last", outcome)
    # Of a writer that was killed between its bytes and its name; no listing shows them.
    staged = [path for path in (folder / "results").rglob("*") if re.search(r"#[0-9]+$", path.name)]
    outcome.facts["staging files left by killed writers"] = len(staged)
    return outcome


def _order(folder: Path, cell: Cell, attempt: str) -> dict[str, str]:
    order = Order(cell=cell, run_id="killed", repeat=1, attempt=attempt, store_url=f"file://{folder}/results")
    return _make_variables(folder) | order.to_variables()


def _check_ok(ending: Ending, outcome: FaultOutcome) -> None:
    outcome.check(ending.exit_code == 0, f"undisturbed, it ended with {ending.exit_code}: {ending.output[-1500:]}")


def _check_attempts(store: Store, ended: set[str], last: str, outcome: FaultOutcome) -> None:
    """Note records that are not whole, that nobody wrote, or that are gone; a killed attempt may have left its own."""
    found = dict(store.get_listed(store.list_keys(results_prefix("killed"))))
    attempts = {parts.attempt for parts in map(parse_result_key, found) if parts is not None}
    outcome.check(len(attempts) == len(found), f"names of no result: {sorted(found)}")
    outcome.check(ended <= attempts, f"lost: {ended - attempts}")
    outcome.check(attempts - ended <= {last}, f"of nobody: {attempts - ended}")
    outcome.facts["killed after their record"] += len(attempts - ended)
    ended |= attempts
    for key, data in found.items():
        try:
            read_result(data if isinstance(data, bytes) else b"")
        except InvalidDocumentError as error:
            outcome.check(False, f"{key}: {error}")
