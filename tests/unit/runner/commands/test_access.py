"""The command `access`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from access_scenarios import describe_scenario

CallMain = Callable[..., tuple[int, str, str]]


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
    assert lines[2].startswith("  Most samples per USD: ")
    for words in (
        "How long users wait",
        "What they get, and for what",
        "By group of users",
        "rent, mps: left out, because the slowdowns of T4 with MPS are not known",
        "What this rests on",
        "users.students.spread exponential assumed",
        "users.students.checkpoint_hours none assumed",
        "alternatives.buy.buy.watts 0 assumed",
        "kinds.H100.slowdowns.mps 1: 1.00, 2: 1.50, 3: 2.15, 4: 2.80 straight lines between the stated ones",
    ):
        assert any(" ".join(line.split()).startswith(words) for line in lines), words


def test_a_reader_is_warned_of_queues_that_grow_and_of_what_costs_too_much(call_main: CallMain, ours: Path) -> None:
    users = [{"name": "all", "number": 8, "job_hours": [24.0], "jobs_per_day": 1.0}]
    given = describe_scenario(users=users, policies=["exclusive"], budget_per_week=90.0)
    ours.write_text(json.dumps(given))
    code, out, _ = call_main("access", ours.name)
    warnings = out.splitlines()
    assert code == 0
    assert any(
        line.startswith("rent, exclusive: users ask for 200 % of what the GPUs can do; queues grow")
        for line in warnings
    )
    assert any(line.startswith("rent, exclusive: ") and "had not ended two weeks after" in line for line in warnings)
    assert "buy, exclusive: costs more than the budget" in warnings


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "error: SCENARIO is missing; "),
        (("nothing",), "error: nothing: is no scenario; known are "),
        (("none.yaml",), "error: none.yaml: there is no such file; "),
        (("ours.yaml", "--weeks", "1"), "error: --weeks 1: expected 5 to 10000"),
        (("wrong.yaml",), "error: wrong.yaml:1: alternatives[0].kind: there is no kind 'T5'; kinds are T4, H100"),
    ],
)
def test_an_error_is_one_message(call_main: CallMain, ours: Path, words: tuple[str, ...], message: str) -> None:
    alternatives = [{"name": "rent", "kind": "T5", "gpus": 1, "rent": {"price_per_hour": 1.0}}]
    Path("wrong.yaml").write_text(json.dumps(describe_scenario(alternatives=alternatives)))
    code, out, err = call_main("access", *words)
    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert len(err.splitlines()) == 1
