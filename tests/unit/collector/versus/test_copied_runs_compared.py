"""A run that was copied under another name is named, and no noise is read from it: it is zero for what it copies."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.store import Store
from collector.results.load import load_run
from collector.versus.identical_runs import load_related_runs
from factories import START
from two_runs import EVEN, TRAIN, compare_runs, put_run, scale

TIMES: dict[str, Any] = {"started_at": START, "finished_at": START + timedelta(seconds=10)}


def test_a_copy_under_another_name_is_named_and_shows_no_noise(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN}, **TIMES)
    put_run(tmp_path, "b", {TRAIN: scale(EVEN, 1.03)}, **TIMES)
    put_run(tmp_path, "copy", {TRAIN: EVEN}, **TIMES)
    found = compare_runs(tmp_path)
    assert found.noise[0].run_ids == ()
    assert "copies, with the attempts and figures of another run, show nothing about the noise: copy (of a)" in (
        found.warnings
    )


def test_a_run_that_was_measured_later_is_none(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN}, **TIMES)
    put_run(tmp_path, "again", {TRAIN: EVEN}, **TIMES | {"started_at": START + timedelta(seconds=1)})
    store = Store.open(f"file://{tmp_path}")
    related = load_related_runs(store, [load_run(store, "a")])
    assert [found.run.run_id for found in related.collections] == ["again"]
    assert related.list_warnings() == []
