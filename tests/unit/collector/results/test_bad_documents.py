"""What stands in a result's place and is none: named with its reason, never fatal."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from bench.store import Store, result_key
from collector.results.collection import Collection
from collector.results.load import load_run
from factories import RUN_ID, make_result, make_run, put_documents
from runner.stored_runs import print_skipped

GOOD = make_result()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return where the second result of a run belongs, whose first is good."""
    store = Store.open(f"file://{tmp_path}/store")
    put_documents(store, make_run(repeats=2), [GOOD])
    return tmp_path / "store" / result_key(RUN_ID, GOOD.cell_id, 2, "a1")


def load(place: Path) -> Collection:
    """Return the run in the store of `place`, with tables written."""
    return load_run(Store.open(f"file://{place.parents[4]}"), RUN_ID, writes_tables=True)


def find_reason(place: Path, status: str = "missing") -> str:
    """Return why the second result does not count; its repeat then has this status."""
    collection = load(place)
    assert collection.results["status"].to_list() == ["ok", status]
    (skipped,) = collection.skipped
    assert skipped.key.endswith(place.name)
    assert load(place).skipped == collection.skipped  # once more, from the tables
    return skipped.reason


def test_a_truncated_result_counts_once_it_is_whole(place: Path) -> None:
    whole = make_result(repeat=2).to_json()
    place.write_bytes(whole[: len(whole) // 2])
    assert find_reason(place).startswith("no JSON: EOF while parsing")
    place.write_bytes(whole)
    collection = load(place)
    assert collection.results["status"].to_list() == ["ok", "ok"]
    assert collection.skipped == ()


def test_of_many_foreign_files_all_are_counted_and_the_first_ten_named(place: Path) -> None:
    folder = place.parents[1]
    for number in range(2_000):
        (folder / f"notes-{number:04}.txt").write_text("")
    collection = load(place)
    assert len(collection.skipped) == 2_000
    assert collection.results["status"].to_list() == ["ok", "missing"]
    text = io.StringIO()
    print_skipped(collection, Console(width=500, file=text))
    lines = text.getvalue().splitlines()
    assert lines[0] == "2,000 documents in the store did not count:"
    assert lines[10].endswith("/results/notes-0009.txt: the key is not one of a result")
    assert lines[11:] == ["  and 1,990 more; skipped.csv of `benchmatrix report --format csv` has all"]
