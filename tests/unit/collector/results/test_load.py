"""Runs loaded from a store: what counts, what is skipped and why."""

import os
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.errors import UserError
from bench.schema import Result
from bench.store import Store, result_key, run_key
from collector.facts import state_outcome, state_resumption
from collector.results.collection import Collection
from collector.results.load import load_run
from collector.results.summary import summarize_cells
from factories import RUN_ID, START, make_cell, make_result, make_run, make_validity, put_documents
from measured_runs import put_and_load


def key_of(result: Result) -> str:
    return result_key(result.run_id, result.cell_id, result.repeat, result.attempt)


def put_text(store: Store, text: str) -> Collection:
    """Put a run of one cell with one good result, and `text` under a second result's key; return what is loaded."""
    good = make_result()
    put_documents(store, make_run(repeats=2), [good])
    store.put(result_key(RUN_ID, good.cell_id, 2, "a1"), text.encode())
    return load_run(store, RUN_ID)


def test_each_planned_repeat_is_one_row_in_the_plans_order(store: Store) -> None:
    cells = [make_cell(batch_size=64), make_cell(batch_size=8)]
    results = [make_result(cells[1], repeat=2), make_result(cells[0], repeat=1)]
    rows = put_and_load(store, make_run(cells, repeats=2), results).results
    assert list(rows[["batch_size", "repeat", "status"]].itertuples(index=False, name=None)) == [
        (64, 1, "ok"),
        (64, 2, "missing"),
        (8, 1, "missing"),
        (8, 2, "ok"),
    ]


def test_a_row_holds_what_was_measured_in_seconds_and_bytes(store: Store) -> None:
    result = make_result(step_seconds=(0.1, 0.4, 0.2), warmup_step_seconds=(0.5, 0.3))
    row = put_and_load(store, make_run(repeats=1), [result]).results.iloc[0]
    assert row["median_step_seconds"] == 0.2
    assert row["window_samples_per_s"] == pytest.approx(3 * 64 / 0.7)
    assert row["warmup_seconds"] == pytest.approx(0.8)
    assert (row["num_warmup_steps_taken"], row["num_steps_taken"]) == (2, 3)
    assert row["peak_rss_bytes"] == 2**30
    assert pd.isna(row["peak_memory_allocated_bytes"])
    assert (row["framework_version"], row["num_threads"]) == ("2.11.0", 2)
    assert row["started_at"] == START


def test_every_raw_step_is_in_the_samples(store: Store) -> None:
    cell = make_cell(device="gpu")
    result = make_result(
        cell,
        step_seconds=(0.2, 0.3),
        warmup_step_seconds=(0.9,),
        device_step_seconds=(0.1, 0.2),
        validity=make_validity("too-short"),
        repeat=2,
    )
    samples = put_and_load(store, make_run([cell], repeats=2), [result]).samples
    assert list(samples[["kind", "index", "seconds"]].itertuples(index=False, name=None)) == [
        ("warmup", 0, 0.9),
        ("timed", 0, 0.2),
        ("timed", 1, 0.3),
    ]
    assert samples["device_seconds"].dropna().to_list() == [0.1, 0.2]
    assert set(samples["repeat"]) == {2}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"schema_version": 1, "run', "no JSON: EOF while parsing"),
        ("\x00\x01", "no JSON: expected value"),
        ("[" * 10_000, "no JSON: recursion limit"),
        ("[]", "no Result: Input should be an object"),
        ('{"hello": "world"}', "no Result: run_id: Field required (and"),
    ],
)
def test_a_damaged_or_foreign_document_is_named_and_skipped(store: Store, text: str, reason: str) -> None:
    collection = put_text(store, text)
    (skipped,) = collection.skipped
    assert skipped.key.endswith("/2-a1.json")
    assert skipped.reason.startswith(reason)
    assert "\n" not in skipped.reason
    assert collection.results["status"].to_list() == ["ok", "missing"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"repeat": 1}, "repeat is '1' inside, '2' in its key"),
        ({"attempt": "zz"}, "attempt is 'zz' inside, 'a1' in its key"),
        ({"run_id": "other"}, f"run_id is 'other' inside, '{RUN_ID}' in its key"),
    ],
)
def test_a_result_that_disagrees_with_its_key_is_skipped(store: Store, changes: dict[str, Any], reason: str) -> None:
    result = make_result(**({"repeat": 2} | changes))
    (skipped,) = put_text(store, result.to_json().decode()).skipped
    assert skipped.reason == reason


def test_a_cell_and_a_repeat_outside_the_plan_are_skipped(store: Store) -> None:
    strange = make_result(make_cell(batch_size=3))
    extra = make_result(repeat=4)
    collection = put_and_load(store, make_run(repeats=3), [strange, extra])
    assert {skipped.key: skipped.reason for skipped in collection.skipped} == {
        key_of(strange): f"cell '{strange.cell_id}' is not in the run's plan",
        key_of(extra): "repeat 4 of a cell that was planned with 3",
    }
    assert set(collection.results["status"]) == {"missing"}


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ({}, "holds no runs"),
        ({"runs/empty/other.json": b"", run_key("smoke-old"): make_run(run_id="smoke-old").to_json()},
         "; did you mean 'smoke-old'? The newest are smoke-old, empty"),
        ({run_key(RUN_ID): b"{"}, "run.json cannot be read: no JSON"),
        ({run_key(RUN_ID): make_run(run_id="other").to_json()}, "run.json holds the run 'other'"),
        ({key_of(make_result()): make_result().to_json()}, "run.json is missing"),
    ],
)  # fmt: skip
def test_a_run_that_is_not_there_or_has_no_plan_is_one_message(
    store: Store, documents: dict[str, bytes], message: str
) -> None:
    for key, data in documents.items():
        store.put(key, data)
    with pytest.raises(UserError, match=re.escape(message)):
        load_run(store, RUN_ID)


def test_a_record_that_the_store_lists_and_does_not_give_is_not_missing(tmp_path: Path) -> None:
    results = [make_result(repeat=number) for number in (1, 2)]
    put_documents(Store.open(f"file://{tmp_path}/store"), make_run(repeats=3), results)
    unread = tmp_path / "store" / key_of(results[0])
    unread.unlink()
    os.mkfifo(unread)

    collection = load_run(Store.open(f"file://{tmp_path}/store"), RUN_ID)

    rows = collection.results
    assert rows["status"].to_list() == ["unreadable", "ok", "missing"]
    assert rows["error_message"].to_list()[::2] == ["is no file", "no result was found"]
    assert "The others: 1 unreadable, 1 missing." in state_outcome(collection)
    assert "a result of 1 repeat and does not give it: how it ended is not known." in state_resumption(collection)
    assert summarize_cells(collection)["num_ok"].to_list() == [1]
