"""runner.commands.options: what a shell offers for arguments, and lengths of time as users write them."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.errors import UserError
from runner.commands.options import complete_run_id, parse_duration


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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("28800.0", 28_800),
        ("90s", 90),
        ("1.5m", 90),
        ("8h", 28_800),
        ("500ms", 0.5),
        ("2d", 172_800),
        ("12w", 7_257_600),
    ],
)
def test_a_length_of_time_is_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert parse_duration("--deadline", text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0h", "-1", "soon", "8 h", "8H", "h", "1h30m", "١h", "nan", "inf"])
def test_what_is_none_is_refused_with_the_option_and_what_it_takes(text: str) -> None:
    with pytest.raises(UserError, match=f"^--deadline {text}: expected a time above 0, at most 31 years, such as 20ms"):
        parse_duration("--deadline", text)
