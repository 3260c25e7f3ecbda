"""Records that the store lists and does not give: what they say is not known, which is not that there is none."""

import os
from pathlib import Path

import pytest

from bench.store import Store, result_key
from collector.facts import state_outcome, state_resumption
from collector.results.collection import Collection
from collector.results.load import load_run
from collector.results.summary import summarize_cells
from factories import RUN_ID, make_result, make_run, put_documents

RUN = make_run(repeats=3)
RESULTS = [make_result(repeat=number) for number in (1, 2)]
KEY = result_key(RUN_ID, RESULTS[0].cell_id, 1, RESULTS[0].attempt)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def read_endings(collection: Collection) -> list[tuple[str, str]]:
    columns = (collection.results[name] for name in ("status", "error_message"))
    return [(status, "" if status == "ok" else reason) for status, reason in zip(*columns, strict=True)]


def test_a_record_that_cannot_be_read_is_not_missing(tmp_path: Path) -> None:
    put_documents(Store.open(f"file://{tmp_path}/store"), RUN, RESULTS)
    (tmp_path / "store" / KEY).unlink()
    os.mkfifo(tmp_path / "store" / KEY)
    reason = "is no file"

    collection = load_run(Store.open(f"file://{tmp_path}/store"), RUN_ID)

    assert read_endings(collection) == [("unreadable", reason), ("ok", ""), ("missing", "no result was found")]
    assert "The others: 1 unreadable, 1 missing." in state_outcome(collection)
    assert "a result of 1 repeat and does not give it: how it ended is not known." in state_resumption(collection)
    assert summarize_cells(collection)["num_ok"].to_list() == [1]
