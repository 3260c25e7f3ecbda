"""runner.commands.options: what a shell offers for arguments and options."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from runner.commands.options import complete_run_id


def make_context(store: str | None) -> SimpleNamespace:
    return SimpleNamespace(params={"store": store})


def make_runs(folder: Path, *names: str) -> None:
    for age, name in enumerate(names):
        path = folder / "runs" / name
        path.mkdir(parents=True)
        os.utime(path, (1e9 - age, 1e9 - age))


def test_runs_of_the_default_store_come_the_newest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_runs(tmp_path / "results", "smoke-2", "smoke-1", "paper-1")
    monkeypatch.chdir(tmp_path)

    assert complete_run_id(make_context(None), "") == ["smoke-2", "smoke-1", "paper-1"]
    assert complete_run_id(make_context(None), "smoke") == ["smoke-2", "smoke-1"]


def test_runs_are_those_of_the_store_that_was_typed_and_no_bucket_is_asked(tmp_path: Path) -> None:
    make_runs(tmp_path / "mine", "a")

    assert complete_run_id(make_context(f"file://{tmp_path}/mine"), "") == ["a"]
    assert complete_run_id(make_context(f"file://{tmp_path}/none"), "") == []
    assert complete_run_id(make_context("s3://bucket/runs"), "") == []
    assert complete_run_id(make_context("mine"), "") == []
