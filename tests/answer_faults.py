"""Writes, counts and collects runs through a store whose answers are faulty, and says what was lost on the way."""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bench.delivery import Delivery
from bench.errors import UserError
from bench.exit_codes import EXIT_NOT_OK, EXIT_OK
from bench.schema import Result, Run
from bench.store import ResultKey, Store, parse_result_key, result_key, run_key
from collector.results.load import Collection, load_run
from factories import make_run
from fault_outcomes import FaultOutcome
from faulty_s3_server import Fault, FaultyS3Server
from runner.records import Records
from s3_server import S3Server
from synthetic_runs import Size, list_cells, make_results

FAULTS: tuple[Fault, ...] = (
    "cut",
    "cut-before",
    "delayed",
    "doubled",
    "lost-answer",
    "overtaken",
    "swapped",
    "shortened",
)
SHARE = 0.2
"""Of the requests that get a fault: several in each round, and often two in a row."""
SIZE = Size(num_cells=3, num_repeats=2, num_steps=20)
MAX_TRIES = 20
"""Of one step of a round, each of which may be refused in words."""
KEY_PARTS = {"run_id", "cell_id", "repeat", "attempt"}
T = TypeVar("T")


class FaultyStore:
    """An S3 server in `folder`, and one with faults before it; the environment leads to the latter."""

    def __init__(self, folder: Path) -> None:
        self.server = S3Server(root=folder / "s3" / "root")
        self.proxy = FaultyS3Server(port=self.server.port)

    def start(self) -> None:
        self.server.start()
        os.environ |= self.server.environment | {"AWS_ENDPOINT_URL": self.proxy.start()}

    def stop(self) -> None:
        self.proxy.stop()
        self.server.stop()

    def open(self) -> Store:
        """Return the store as a process that starts now sees it: nothing is known of its ETags."""
        return Store.open(f"s3://{self.server.bucket}/faults")


def suffer_answers(faulty: FaultyStore, fault: Fault, *, num_faults: int, seed: int) -> FaultOutcome:
    """Write and collect runs until so many answers were faulty in this way, and return what happened."""
    outcome = FaultOutcome(name=f"answers {fault}")
    chance = random.Random(seed)
    num_before = faulty.proxy.faults[fault]
    while outcome.num_faults < num_faults:
        run_id = f"{fault}-{outcome.facts['runs']}"
        run = make_run(list_cells(SIZE.num_cells), repeats=SIZE.num_repeats, run_id=run_id)
        results = [result.model_copy(update={"run_id": run_id}) for result in make_results(SIZE)]
        faulty.proxy.choose_fault = lambda method, path: fault if chance.random() < SHARE else None
        _live_through(faulty, run, results, outcome)
        faulty.proxy.choose_fault = lambda method, path: None
        outcome.num_faults = faulty.proxy.faults[fault] - num_before
        _check_store(faulty.open(), run, results, outcome)
        outcome.facts["runs"] += 1
        outcome.facts["results"] += len(results)
    return outcome


def _live_through(faulty: FaultyStore, run: Run, results: list[Result], outcome: FaultOutcome) -> None:
    """Do what a runner, its measuring processes and a collector do, while answers are faulty."""
    store = faulty.open()
    _insist(lambda: store.put(run_key(run.run_id), run.to_json()), outcome)
    for result in results:
        delivery = Delivery(store=store)
        code = delivery.deliver(result, deadline=time.monotonic() + 600)
        outcome.check(code in (EXIT_OK, EXIT_NOT_OK), f"{result.cell_id}: delivered with code {code}")
    snapshot = _insist(lambda: Records.of(store, run).read_snapshot(), outcome)
    outcome.check(not snapshot.damaged, f"a runner would measure again: {snapshot.damaged}")
    ended = {(result.cell_id, result.repeat) for result in results}
    outcome.check(snapshot.ended == ended, f"a runner sees {len(snapshot.ended)} of {len(ended)} repeats")
    collection = _insist(lambda: load_run(store, run.run_id, writes_tables=True), outcome)
    # The same wrong answer twice in a row is taken for the object: it is named, and read again the next time.
    named = {parse_result_key(skipped.key) for skipped in collection.skipped}
    outcome.facts["documents named and left out once"] += len(named)
    read = [one for one in results if ResultKey(**one.model_dump(include=KEY_PARTS)) not in named]
    _check_collection(collection, read, outcome)


def _insist(work: Callable[[], T], outcome: FaultOutcome) -> T:
    """Return what `work` returns, as a user does who gives the same command again where it says that it failed."""
    for _ in range(MAX_TRIES):
        try:
            return work()
        except UserError:
            outcome.facts["refusals in words"] += 1
    return work()


def _check_collection(collection: Collection, results: list[Result], outcome: FaultOutcome) -> None:
    found = {
        (row.cell_id, row.repeat): (row.attempt, row.status)
        for row in collection.results.itertuples()
        if row.status != "missing"
    }
    expected = {(result.cell_id, result.repeat): (result.attempt, result.status) for result in results}
    outcome.check(found == expected, f"collected {len(found)} of {len(expected)}: {collection.skipped}")


def _check_store(store: Store, run: Run, results: list[Result], outcome: FaultOutcome) -> None:
    """Note what the store lacks or has too much of, now that its answers are right, and collect once more."""
    stored = dict(store.get_listed(store.list_keys(f"runs/{run.run_id}")))
    expected = {run_key(run.run_id): run.to_json()}
    expected |= {result_key(run.run_id, one.cell_id, one.repeat, one.attempt): one.to_json() for one in results}
    outcome.check(stored == expected, f"the store has {sorted(stored)}, expected {sorted(expected)}")
    collection = load_run(store, run.run_id, writes_tables=True)
    _check_collection(collection, results, outcome)
    outcome.check(not collection.skipped, f"skipped for good: {collection.skipped}")
