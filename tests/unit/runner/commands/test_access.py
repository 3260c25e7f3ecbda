"""The command `access`."""

import json
from pathlib import Path

import pytest

from access_scenarios import describe_scenario
from workspace import CallMain


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario in the working directory."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "ours.yaml"
    path.write_text(json.dumps(describe_scenario(policies=["exclusive", "mps"])))
    return path


def test_an_answer_comes_with_tables_and_all_that_it_rests_on(call_main: CallMain, ours: Path) -> None:
    code, out, err = call_main("access", ours.name)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "Buy or rent?"
    assert lines[2].startswith("Most samples per USD: ")
    for words in (
        "How long users wait, and what they get",
        "What it costs",
        "From so many hours of jobs a week a bought machine is cheaper",
        "What this rests on",
        "users.students.spread exponential assumed",
        "users.students.checkpoint_hours None assumed",
        "alternatives.buy.buy.watts 0.0 assumed",
        "alternatives.rent.rent.price_per_hour 0.5 not said",
        "kinds.H100.slowdowns.mps 1: 1.00, 2: 1.50, 3: 2.15, 4: 2.80 straight lines between those of the file",
    ):
        assert any(" ".join(line.split()).startswith(words) for line in lines), words


def test_a_reader_sees_what_costs_too_much_and_which_jobs_did_not_end(call_main: CallMain, ours: Path) -> None:
    users = {"all": {"number": 8, "job_hours": [24.0], "jobs_per_day": 1.0}}
    given = describe_scenario(users=users, policies=["exclusive", "mps"], budget_per_week=90.0)
    ours.write_text(json.dumps(given))
    code, out, _ = call_main("access", ours.name, "--markdown")
    times, amounts = (out[out.index(title) :].split("\n\n")[1] for title in ("How long users wait", "What it costs"))
    not_ended = [line.split("|")[-2].strip() for line in times.splitlines()[2:] if "(all)" in line]
    assert code == 0
    assert len(not_ended) == 3  # of T4s with MPS no slowdowns are known
    assert all(text.startswith("0 of ") for text in not_ended[:2])
    assert int(not_ended[2].partition(" of ")[0]) > 100  # eight users ask for twice what four T4s can do
    assert [line.split("|")[5].strip() for line in amounts.splitlines()[2:]] == ["yes", "yes", ""]
