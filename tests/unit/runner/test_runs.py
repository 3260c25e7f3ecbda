"""Which run is resumed and where, and what is missing in it; damaged records count as missing."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any, cast

import pytest
from rich.console import Console

from bench.errors import UserError
from bench.schema import Cluster, Run, Stopping
from bench.store import ResultKey, Store, result_key
from collector.results.load import load_run
from factories import make_cell, make_failed_result, make_run, make_validity, present, put_documents
from ongoing_runs import make_ongoing
from runner.kubernetes.names import JobKey
from runner.kubernetes.recording import ResultRecorder
from runner.kubernetes.tracked_jobs import TrackedJob
from runner.runs import (
    NO_RETRIES,
    Records,
    Retries,
    RunRequest,
    begin_run,
    find_unfinished_run,
    measure_attempt,
    read_run,
)
from runner.stored_runs import find_newest_run
from stored_runs import (
    CELL_A,
    CELL_B,
    NOW,
    list_missing_repeats,
    make_contaminated,
    make_failed,
    make_ok,
    make_own_run,
    name_repeats,
)

FAILED, CONTAMINATED = Retries(failed=True), Retries(contaminated=True)
BOTH = Retries(failed=True, contaminated=True)
VALIDITY = {
    "contaminated": make_validity("contaminated"),
    "disturbed": make_validity("over-peak", "contaminated"),  # whatever graver verdict it has
    "noisy": make_validity("noisy"),  # a bad measurement that nobody disturbed
}


@pytest.mark.parametrize(
    ("records", "missing"),
    [
        ("a1 ok, b1 failed, b2 ok", {NO_RETRIES: "a2"}),
        ("a1 failed, a1 ok, b1 failed, b1 failed", {NO_RETRIES: "a2 b2", FAILED: "b1 a2 b2"}),
        (
            "a1 contaminated, a1 contaminated, b1 contaminated, b1 noisy, a2 failed, b2 ok",
            {NO_RETRIES: "", CONTAMINATED: "a1", BOTH: "a1 a2"},
        ),
        ("a1 disturbed, b1 ok, a2 ok, b2 ok", {FAILED: "", CONTAMINATED: "a1"}),
    ],
)
def test_missing_is_what_has_no_record_and_what_is_to_be_measured_again(
    store: Store, records: str, missing: dict[Retries, str]
) -> None:
    run, cells, results = make_own_run(repeats=2), {"a": CELL_A, "b": CELL_B}, []
    for number, (repeat, how) in enumerate(record.split() for record in records.split(", ")):
        make = make_failed if how == "failed" else make_ok
        result = make(run, cells[repeat[0]], repeat=int(repeat[1]), attempt=f"a{number}")
        results.append(result.model_copy(update={"validity": VALIDITY[how]}) if how in VALIDITY else result)
    put_documents(store, run, results)

    names: dict[str, str] = {CELL_A.framework: "a", CELL_B.framework: "b"}
    for retries, expected in missing.items():
        found = name_repeats(list_missing_repeats(store, run, retries))
        assert " ".join(f"{names[framework]}{number}" for framework, number in found) == expected


def test_a_resumed_run_goes_on_in_the_order_that_was_drawn_for_it(store: Store) -> None:
    cells = tuple(make_cell(batch_size=size) for size in range(1, 7))
    run = make_own_run(cells=cells, repeats=2, order_seed=5)
    put_documents(store, run, [])
    planned = [repeat.key for repeat in list_missing_repeats(store, run)]
    done = planned[:3]
    put_documents(store, run, [make_ok(run, cell) for cell in cells if (cell.cell_id, 1) in done])

    found = present(read_run(store, run.run_id))
    assert found.order_seed == 5
    assert [repeat.key for repeat in list_missing_repeats(store, found)] == planned[3:]
    assert planned[:6] != [(cell.cell_id, 1) for cell in cells]


def test_keys_that_are_no_results_and_results_of_other_cells_do_not_count(store: Store) -> None:
    run = make_own_run()
    put_documents(store, run, [make_ok(run, make_cell(batch_size=1)), make_ok(run, CELL_A, repeat=2)])
    store.put(f"runs/{run.run_id}/results/notes.txt", b"")
    store.put(f"runs/{run.run_id}/results/{CELL_A.cell_id}/1-a1.json.tmp", b"")

    assert name_repeats(list_missing_repeats(store, run)) == [("pytorch", 1), ("tensorflow", 1)]


def test_a_run_dated_in_the_future_is_passed_over_and_named(store: Store) -> None:
    far = datetime.now(UTC) + timedelta(days=400)
    put_documents(store, make_run(run_id="mistaken", created_at=far), [])
    warnings: list[str] = []
    assert find_newest_run(store, warnings.append).run_id == "mistaken"
    put_documents(store, make_run(run_id="right", created_at=NOW), [])
    assert find_newest_run(store, warnings.append).run_id == "right"
    words = f"run mistaken: began on {far:%Y-%m-%d}, which is to come: a clock was or is wrong"
    assert warnings == [f"{words}; there is no other", f"{words}; name it to have it"]


def test_the_newest_run_is_the_one_begun_last_whose_plan_can_be_read(store: Store) -> None:
    for name, age_hours in (("zzz", 3), ("good", 1), ("mmm", 2)):
        put_documents(store, make_run(run_id=name, created_at=NOW - timedelta(hours=age_hours)), [])
    store.put("runs/no-plan/results/x.json", b"{}")
    store.put("runs/damaged/run.json", b"{")
    newer = make_run(run_id="newer", created_at=NOW + timedelta(hours=1)).to_json()
    store.put("runs/newer/run.json", newer.replace(b'"schema_version": 2', b'"schema_version": 3', 1))

    assert find_newest_run(store).run_id == "good"


@pytest.mark.parametrize(
    ("changes", "is_found"),
    [
        ({}, True),
        ({"begun": NOW - timedelta(hours=23, minutes=59)}, True),
        ({"begun": NOW - timedelta(hours=24, seconds=1)}, False),
        ({"begun": NOW + timedelta(minutes=5)}, True),  # another machine's clock, or this one's set back
        ({"begun": NOW + timedelta(hours=25)}, False),
        ({"hostname": "bench-2"}, False),
        ({"repeats": 2}, False),
        ({"cells": (CELL_A,)}, False),
        ({"timeout_seconds": 1.0}, True),
        ({"git_revision": "0" * 40, "tool_version": "0.0.1", "user": "eve"}, True),
        ({"run_id": "my-run"}, False),  # named by the user: resumed by that name alone
        ({"run_id": "smoke-20260301-120000-ab12x"}, False),
    ],
)
def test_a_run_of_the_same_plan_is_resumed_on_the_same_machine_within_a_day(
    changes: dict[str, Any], is_found: bool, store: Store
) -> None:
    run = make_own_run(**changes)
    put_documents(store, run, [])

    found = find_unfinished_run(store, make_own_run(number="0000"))

    assert found == (run if is_found else None)


def test_of_two_unfinished_runs_the_newer_one_is_resumed(store: Store) -> None:
    for hours in (3, 1, 2):
        put_documents(store, make_own_run(begun=NOW - timedelta(hours=hours), number="ffff"), [])

    found = present(find_unfinished_run(store, make_own_run()))
    assert found.created_at == NOW - timedelta(hours=1)


def test_a_finished_run_is_resumed_only_to_retry_what_is_not_ok(store: Store) -> None:
    finished = make_own_run(begun=NOW - timedelta(hours=1))
    put_documents(store, finished, [make_contaminated(finished, CELL_A), make_ok(finished, CELL_B)])
    assert find_unfinished_run(store, make_own_run()) is None
    assert find_unfinished_run(store, make_own_run(), Retries(failed=True)) is None
    assert find_unfinished_run(store, make_own_run(), Retries(contaminated=True)) == finished
    failed = make_own_run(begun=NOW - timedelta(minutes=1), number="ffff")
    put_documents(store, failed, [make_ok(failed, CELL_A), make_failed(failed, CELL_B)])
    assert find_unfinished_run(store, make_own_run()) is None
    assert find_unfinished_run(store, make_own_run(), Retries(failed=True)) == failed


def test_a_run_is_resumed_until_the_number_of_its_repeats_is_decided(store: Store) -> None:
    open_rule = Stopping(first=2, most=4, half_width=0.02)
    plan = make_own_run(cells=(CELL_A,), repeats=2, stopping=open_rule, number="0000")
    for rule in (open_rule, open_rule.model_copy(update={"is_decided": True})):
        run = make_own_run(cells=(CELL_A,), repeats=2, stopping=rule)
        put_documents(store, run, [make_ok(run, CELL_A, repeat) for repeat in (1, 2)])
        assert find_unfinished_run(store, plan) == (None if rule.is_decided else run)


def test_damaged_plans_and_other_matrices_do_not_hide_the_unfinished_run(store: Store) -> None:
    run = make_own_run(begun=NOW - timedelta(hours=2))
    put_documents(store, run, [])
    store.put("runs/smoke-20260301-115900-0000/run.json", b"{")
    store.put("runs/smoke-20260301-115901-0000/results/x.json", b"{")
    for minute in range(20):
        put_documents(store, make_own_run(begun=NOW + timedelta(minutes=minute), hostname="bench-2"), [])
        put_documents(store, make_run(run_id=f"smoke-big-20260301-12{minute:02}00-0000"), [])

    assert find_unfinished_run(store, make_own_run()) == run


def damage_first(run: Run, store: Store, how: str) -> str:
    """Put a damaged record of CELL_A into the store and return its key."""
    result = make_ok(run, CELL_A)
    data = result.to_json()
    damaged = {
        "cut": data[: len(data) // 2],
        "empty": b"",
        "no-json": b"{",
        "other-version": data.replace(b'"schema_version": 2', b'"schema_version": 3', 1),
        "anothers": make_ok(run, CELL_B).to_json(),
    }[how]
    assert damaged != data
    key = f"runs/{run.run_id}/results/{CELL_A.cell_id}/1-{result.attempt}.json"
    store.put(key, damaged)
    return key


@pytest.mark.parametrize("how", ["cut", "empty", "no-json", "other-version", "anothers"])
def test_a_damaged_record_is_missing_as_in_the_report(how: str, store: Store) -> None:
    run = make_own_run()
    put_documents(store, run, [make_ok(run, CELL_B)])
    key = damage_first(run, store, how)

    for retries in (NO_RETRIES, Retries(failed=True, contaminated=True)):
        assert name_repeats(list_missing_repeats(store, run, retries)) == [("pytorch", 1)]
    assert find_unfinished_run(store, make_own_run()) == run
    assert [document.key for document in load_run(store, run.run_id).skipped] == [key]
    console = Console(file=StringIO(), width=200)
    begin_run(store, run, Records(store, run.run_id).read_snapshot(), [], console)
    assert f"damaged records: 1, which count as missing; such as {key}" in cast(StringIO, console.file).getvalue()


@pytest.mark.parametrize("how", ["cut", "anothers"])
def test_a_repeat_that_is_measured_again_has_the_record_that_can_be_read(how: str, store: Store) -> None:
    run = make_own_run()
    key = damage_first(run, store, how)
    repeat = list_missing_repeats(store, run)[0]
    earlier = Records(store, run.run_id).read_snapshot().earlier[repeat.key]
    assert earlier == (key,)
    job = JobKey(run_id=run.run_id, cell_id=CELL_A.cell_id, number=1, retry_round=1)
    tracked, recorder = TrackedJob(repeat=repeat, key=job), ResultRecorder(run=make_ongoing(store, plan=run))
    assert recorder.find_record(tracked) is None  # nor is it one where it comes only now
    tracked.earlier = earlier
    result = make_ok(run, CELL_A, attempt="zz")
    put_documents(store, run, [result])
    assert recorder.find_record(tracked) == result


def test_all_records_that_are_not_ok_are_earlier_ones_and_damaged_ones_alone_are_read_again(store: Store) -> None:
    run = make_own_run()
    timeout = make_failed_result(CELL_A, status="timeout", run_id=run.run_id, repeat=1, attempt="a0")
    results = [timeout, make_contaminated(run, CELL_A), make_ok(run, CELL_B)]
    put_documents(store, run, results)
    keys, records = [result_key(*ResultKey.of(result)) for result in results], Records(store, run.run_id)
    store.put(keys[0], b"{")
    assert records.read_snapshot().damaged == keys[:1]
    store.put(keys[0], timeout.to_json())
    store.put(keys[2], b"{")
    snapshot, repeat = records.read_snapshot(), (CELL_A.cell_id, 1)
    assert (snapshot.damaged, snapshot.earlier) == ([], {repeat: tuple(keys[:2])})
    seconds = [(result.finished_at - result.started_at).total_seconds() for result in results[:2]]
    assert (snapshot.seconds[repeat], min(seconds) > 0) == (sum(seconds), True)
    assert snapshot.find_present(Retries(failed=True, contaminated=True)) == {(CELL_B.cell_id, 1)}
    assert measure_attempt(NOW, NOW + timedelta(days=400)) == 0  # a clock that was set meanwhile


ONE, NEW, OTHER = "1" * 64, "2" * 64, "3" * 64
"""Digests of certificates of authorities."""


@dataclass(frozen=True, kw_only=True)
class Request(RunRequest):
    """The request for a run of a plan."""

    matrix: str = "m.yaml"
    start_new: bool = False
    retries: Retries = NO_RETRIES
    plan: Run

    def make_plan(self) -> Run:
        return self.plan


def make_place(namespace: str = "lab", context: str = "gke-1", **others: Any) -> Cluster:
    return Cluster(context=context, namespace=namespace, profile="mine", **others)


@pytest.mark.parametrize(
    ("there", "here", "words"),
    [
        (make_place("a"), make_place("b"), "was begun in namespace a of gke-1, and this is in namespace b of gke-1: a"),
        (None, make_place("b"), "was begun on bench-1, and this is in namespace b of gke-1: a runner"),
        (make_place("a"), None, "was begun in namespace a of gke-1, and this is on bench-1: a runner"),
        (
            make_place(context="in-cluster", authorities=(ONE, NEW)),
            make_place(context="in-cluster", authorities=(OTHER,)),
            "was begun in namespace lab of in-cluster, and this is another cluster of this name, with another "
            "certificate authority: a runner",
        ),
    ],
)
def test_a_named_run_of_another_namespace_is_refused_as_its_runner_would_not_be_seen(
    store: Store, there: Cluster | None, here: Cluster | None, words: str
) -> None:
    put_documents(store, make_own_run(run_id="mine", cluster=there), [])
    plan = make_own_run(run_id="mine", cluster=here)
    with pytest.raises(UserError, match=f"--run-id mine: run mine {words}"):
        Request(store=store, run_id="mine", plan=plan).choose_run()


@pytest.mark.parametrize(
    ("there", "here", "warnings"),
    [
        ({"cluster": make_place()}, {"cluster": make_place(queue="q"), "hostname": "b"}, 0),
        ({"cluster": make_place()}, {"cluster": make_place(context="gke-2")}, 1),
        ({"hostname": "a"}, {"hostname": "a"}, 0),
        ({"hostname": "a"}, {"hostname": "b"}, 1),
        ({"cluster": make_place(authorities=(ONE,))}, {"cluster": make_place(authorities=(OTHER,))}, 1),
        ({"cluster": make_place(authorities=(ONE,))}, {"cluster": make_place(authorities=(ONE, NEW))}, 0),
        ({"cluster": make_place(authorities=(ONE,))}, {"cluster": make_place()}, 0),
        (
            {"cluster": make_place(context="in-cluster")},
            {"cluster": make_place(context="in-cluster", authorities=(ONE,))},
            0,
        ),
    ],
)
def test_a_named_run_of_what_may_be_another_place_is_resumed_with_a_warning(
    store: Store, there: dict[str, Any], here: dict[str, Any], warnings: int, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_own_run(run_id="mine", **there)
    put_documents(store, run, [])
    assert Request(store=store, run_id="mine", plan=make_own_run(run_id="mine", **here)).choose_run() == run
    assert capsys.readouterr().err.count("warning: run mine was begun") == warnings


@pytest.mark.parametrize(
    ("authorities", "is_resumed"),
    [((ONE,), True), ((ONE, NEW), True), ((), True), ((OTHER,), False)],
    ids=["the same", "while it is replaced", "not known", "another"],
)
def test_an_unfinished_run_is_resumed_by_itself_on_the_same_cluster_alone(
    store: Store, authorities: tuple[str, ...], is_resumed: bool
) -> None:
    """Two clusters may both be called `default`."""
    run = make_own_run(cluster=make_place(context="default", authorities=(ONE,)))
    put_documents(store, run, [])
    put_documents(store, make_own_run(number="b000"), [])  # of this machine
    plan = make_own_run(cluster=make_place(context="default", authorities=authorities))
    plan = plan.model_copy(update={"run_id": plan.run_id[:-4] + "ffff"})
    found = Request(store=store, run_id=None, plan=plan).choose_run()
    assert found == (run if is_resumed else plan)
