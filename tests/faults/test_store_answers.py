"""An S3 server whose answers are cut, late, doubled, lost, overtaken or another's: a few of each; see `make faults`."""

import os
from collections.abc import Iterator

import pytest

from answer_faults import FAULTS, FaultyStore, suffer_answers
from collector.results.load import load_run
from faulty_s3_server import Fault
from runner.records import Records
from synthetic_runs import Size, put_run

NUM_FAULTS = 3
SMALL = Size(num_cells=2, num_repeats=1, num_steps=10)


def shorten_results(faulty: FaultyStore, num_answers: int) -> None:
    """Have so many of the next answers with a result be half of it."""
    left: list[Fault] = ["shortened"] * num_answers
    faulty.proxy.choose_fault = lambda method, path: (
        left.pop() if method == "GET" and path.endswith(".json") and "/results/" in path and left else None
    )


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyStore]:
    """One server for all faults, and the environment that leads to it."""
    before = dict(os.environ)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_REGION"):
        os.environ.pop(name, None)
    store = FaultyStore(tmp_path_factory.mktemp("faulty"))
    store.start()
    yield store
    store.stop()
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_whose_answers_are_faulty_is_stored_and_collected_whole(faulty: FaultyStore, fault: Fault) -> None:
    outcome = suffer_answers(faulty, fault, num_faults=NUM_FAULTS, seed=1)
    assert outcome.problems == []
    assert outcome.num_faults >= NUM_FAULTS


def test_a_result_whose_answer_is_wrong_twice_is_named_and_read_again_by_the_next_collection(
    faulty: FaultyStore,
) -> None:
    run = put_run(faulty.open(), SMALL)
    shorten_results(faulty, num_answers=100)
    first = load_run(faulty.open(), run.run_id, writes_tables=True)
    shorten_results(faulty, num_answers=0)
    second = load_run(faulty.open(), run.run_id, writes_tables=True)

    assert (len(first.skipped), set(first.results["status"])) == (2, {"unreadable"})
    assert (second.skipped, "missing" in set(second.results["status"])) == ((), False)


def test_a_record_whose_answer_is_wrong_twice_is_not_measured_again(faulty: FaultyStore) -> None:
    store = faulty.open()
    run = put_run(store, SMALL)
    num_before = faulty.proxy.faults["shortened"]
    shorten_results(faulty, num_answers=2)
    snapshot = Records.of(store, run).read_snapshot()

    assert (snapshot.damaged, len(snapshot.ended)) == ((), 2)
    assert faulty.proxy.faults["shortened"] == num_before + 2
