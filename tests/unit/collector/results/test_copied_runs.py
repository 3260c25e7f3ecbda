"""copied_runs: where the repeats of several runs count together, those of a copy count once, and it is named."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.store import Store
from collector.audit.page import make_claims_page
from collector.results.load import load_distinct_runs, load_runs
from collector.results.summary import summarize_collections
from factories import START, make_failed_result
from two_runs import EVEN, INFER, TRAIN, put_run, scale

TIMES: dict[str, Any] = {"started_at": START, "finished_at": START + timedelta(seconds=10)}
COPIED = "of its repeats have the measurements of another run (of a): they do not count"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with a run, and a copy of it in which one cell was measured anew."""
    put_run(tmp_path, "a", {TRAIN: EVEN, INFER: EVEN}, **TIMES)
    again: dict[str, Any] = {
        "started_at": START + timedelta(days=1),
        "finished_at": START + timedelta(days=1, seconds=10),
    }
    put_run(tmp_path, "partly", {TRAIN: EVEN, INFER: scale(EVEN, 2.0)}, **TIMES)
    put_run(tmp_path, "anew", {INFER: scale(EVEN, 2.0)}, **again)
    failed = make_failed_result(TRAIN, run_id="copy", repeat=4)
    put_run(tmp_path, "copy", {TRAIN: EVEN, INFER: EVEN}, failed, repeats=4, **TIMES)
    return Store.open(f"file://{tmp_path}")


def test_copies_count_once_and_are_named(store: Store) -> None:
    original, copy, anew = load_distinct_runs(store, ["a", "copy", "anew"])
    assert copy.notices == (f"run copy: 6 {COPIED}",)
    assert (len(copy.results), len(copy.samples), original.notices, anew.notices) == (0, 0, (), ())
    pd.testing.assert_frame_equal(
        summarize_collections([original, copy, anew]), summarize_collections(load_runs(store, ["a", "anew"]))
    )
    assert make_claims_page([original, copy])[1] == make_claims_page([original])[1]


def test_what_a_copy_measured_itself_counts_with_its_own_steps(store: Store) -> None:
    (_, partly), (_, whole) = load_distinct_runs(store, ["a", "partly"]), load_runs(store, ["a", "partly"])
    assert partly.notices == (f"run partly: 3 {COPIED}",)
    own = [found[found["cell_id"] == INFER.cell_id] for found in (whole.samples, partly.samples)]
    pd.testing.assert_frame_equal(own[0].reset_index(drop=True), own[1].reset_index(drop=True))
    assert len(own[1]) == len(partly.samples)
    row = summarize_collections([partly]).set_index("cell_id").loc[INFER.cell_id]
    assert row["q3_step_seconds"] == pytest.approx(2 * max(EVEN), rel=0.02)
