"""What is shown of a run: on a terminal, in a pipe, as JSON lines and to Prometheus, here and on a cluster."""

import io
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from bench.schema import PlannedCell, Reason, Validity, Verdict
from cluster_objects import load_job
from factories import make_cell, make_failed_result, make_result, make_validity
from ongoing_runs import track
from runner.kubernetes.tracked_jobs import State, TrackedJobs
from runner.matrix import Repeat, order_repeats
from runner.progress import (
    ClusterProgress,
    LocalProgress,
    RunEvent,
    RunEvents,
    count_states,
    describe_verdict,
    name_busiest,
    read_others,
)

CELL_A, CELL_B = make_cell(), make_cell(framework="tensorflow")
SLUG_A, SLUG_B = "conv6-pytorch-cpu-train-fp32-eager-b64", "conv6-tensorflow-cpu-train-fp32-eager-b64"

Wait = Callable[[float], None]


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Wait:
    """Lets so many seconds pass on the clock of runner.progress, which stands still otherwise."""
    now = [1000.0]
    monkeypatch.setattr("runner.progress.time", SimpleNamespace(monotonic=lambda: now[0]))

    def advance(seconds: float) -> None:
        now[0] += seconds

    return advance


def make_repeats(repeats: int) -> list[Repeat]:
    """Return the repeats A1 B1 A2 B2 ... of two cells."""
    planned = (PlannedCell(cell=cell, repeats=repeats, timeout_seconds=60.0) for cell in (CELL_A, CELL_B))
    return order_repeats(planned, None)


def measure(progress: LocalProgress, repeat: Repeat, seconds: float, wait: Wait) -> None:
    progress.start_repeat(repeat)
    wait(seconds)
    progress.finish_repeat(repeat, make_result(repeat.planned.cell, repeat=repeat.number, step_seconds=(0.05,)))


def test_a_pipe_gets_a_line_for_each_repeat_and_one_of_progress_now_and_then(wait: Wait) -> None:
    file = io.StringIO()
    first, second, third, fourth = make_repeats(2)

    with LocalProgress(Console(file=file, width=40), [first, second, third, fourth]) as progress:
        measure(progress, first, 4.0, wait)
        progress.start_repeat(second)
        wait(40.0)
        progress.show()
        progress.finish_repeat(second, make_failed_result(CELL_B, message="ended by SIGSEGV [core dumped]"))
        assert "2 done, 2 to go, 1 of the done failed" in progress.format_line()

    assert file.getvalue().splitlines() == [
        f"measuring {SLUG_A}, repeat 1/2, 0 s; 1 running, 3 to go",
        f"ok      {SLUG_A}, repeat 1/2  4.0 s  step 50 ms",
        f"measuring {SLUG_B}, repeat 1/2, 40 s; 1 done, 1 running, 2 to go, about 2 min left",
        f"failed  {SLUG_B}, repeat 1/2  40.0 s  ended by SIGSEGV [core dumped]",
    ]


class Terminal(io.StringIO):
    """Takes what is printed to a terminal."""

    def isatty(self) -> bool:
        return True

    def read_new(self) -> str:
        """Return what was written since the last call."""
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text


def test_a_terminal_shows_what_is_measured_now(wait: Wait, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    terminal = Terminal()
    console = Console(file=terminal, width=100, markup=False, _environ={"TERM": "xterm-256color"})
    first, second = make_repeats(1)

    with LocalProgress(console, [first, second]) as progress:
        progress.start_repeat(first)
        wait(3.0)
        progress.show()
        shown = terminal.read_new()
        assert f"measuring {SLUG_A}, repeat 1/1, 3 s" in shown
        assert "1 running, 1 to go" in shown
        assert "\x1b[" in shown
        wait(1.0)
        progress.finish_repeat(first, make_result(CELL_A))
        assert re.search(rf"ok .*{SLUG_A}, repeat 1/1  4\.0 s  step 100 ms\s", terminal.read_new())
        progress.start_repeat(second)
        assert "1 done, 1 running, about 4 s left" in terminal.read_new()
    assert terminal.read_new().endswith("\x1b[2K")  # the live lines are erased


def read_events(file: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.getvalue().splitlines()]


def test_every_line_is_an_event_of_the_schema() -> None:
    file, tracked = io.StringIO(), track("cpu", 1)
    console = Console(file=file, width=40)
    with ClusterProgress(console, RunEvents(console)) as progress:
        for _ in range(2):  # the second is too early for a line
            progress.tick(TrackedJobs([tracked]))
        tracked.disrupted_pod_uids = frozenset({"gone"})
        progress.finish(tracked, make_result(CELL_A, step_seconds=(0.05,)))
        progress.finish(tracked, make_failed_result(CELL_A, message="ended by SIGSEGV [core\ndumped]"))
        progress.warn("no node \x1b[31mfits")

    zeroth, first, second, third = (RunEvent.model_validate(event) for event in read_events(file))
    assert (zeroth.event, zeroth.done, zeroth.to_submit, zeroth.seconds_left) == ("progress", 0, 1, None)
    assert (first.event, first.job, first.status, first.step_seconds) == ("finished", tracked.name, "ok", 0.05)
    assert (first.preempted, first.error) == (1, None)
    assert (second.status, second.step_seconds) == ("failed", None)
    assert second.error == "ended by SIGSEGV [core\ndumped]"
    assert (third.event, third.message) == ("warning", "no node \x1b[31mfits")


def test_a_scrape_finds_the_counts_of_the_run_and_of_its_requests() -> None:
    connection: Any = SimpleNamespace(num_requests={"list jobs": 3})
    file, tracked = io.StringIO(), track("cpu", 1)
    tracked.disrupted_pod_uids = frozenset({"a", "b"})
    with ClusterProgress(Console(file=file)) as progress:
        registry = progress.serve_metrics(connection, 0)
        progress.tick(TrackedJobs([track("cpu", 1)]))
        progress.finish(tracked, make_result(CELL_A))
        progress.warn("no node fits")

    found = {
        name: registry.get_sample_value(f"benchmatrix_{name}", labels)
        for name, labels in {
            "repeats": {"state": "to_submit"},
            "results_total": {"status": "ok"},
            "api_requests_total": {"request": "list jobs"},
            "warnings_total": {},
            "preempted_pods_total": {},
        }.items()
    }
    assert list(found.values()) == [1, 1, 3, 1, 2]
    assert "after 2 preempted" in file.getvalue()


def test_jobs_are_counted_by_what_they_do_now() -> None:
    jobs, running = [track("cpu", seed) for seed in range(6)], load_job("running")
    states: list[State] = ["to-submit", "submitting", "recording", "in-flight", "in-flight", "in-flight"]
    for tracked, state in zip(jobs, states, strict=True):
        tracked.state = state
    starting = replace(running, num_ready=0)
    jobs[3].job, jobs[4].job, jobs[5].job = running, starting, replace(starting, num_active=0, is_suspended=True)
    assert list(count_states(TrackedJobs(jobs)).values()) == [0, 1, 3, 1, 1]


@pytest.mark.parametrize(
    ("verdict", "message", "expected"),
    [
        (
            "contaminated",
            "others kept 1.4 of 2 cores busy: the cell's 2 threads were short of 1.4 cores, more than 10% of 2",
            "contaminated (others kept 1.4 of 2 cores busy)",
        ),
        ("too-short", "the window lasted 0.20 s, less than 0.5 s", "too-short (the window lasted 0.20 s)"),
        ("noisy", "\x1b[2Jred", "noisy ( [2Jred)"),
    ],
)
def test_a_verdict_stands_with_the_short_form_of_its_reason(verdict: Verdict, message: str, expected: str) -> None:
    reasons = (Reason(verdict="noisy", message="another: reason"), Reason(verdict=verdict, message=message))
    assert describe_verdict(Validity(verdict=verdict, reasons=reasons[verdict == "noisy" :])) == expected


def test_the_busiest_of_others_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    before = {(7, 1): ("ffmpeg", 20.0), (8, 1): ("chrome", 1.0)}
    after = {(7, 1): ("ffmpeg", 26.0), (8, 1): ("chrome", 1.2), (7, 2): ("sleeper", 0.1), (10, 2): ("new", 0.8)}
    assert name_busiest(before, after, 10.0) == ["ffmpeg (0.6 cores, process 7)", "new (0.1 cores, process 10)"]
    assert name_busiest({}, {(7, 1): ("ffmpeg", 2.0)}, 10.0) == []  # too little to disturb
    assert os.getpid() not in {pid for pid, _ in read_others()}


@pytest.mark.parametrize(
    ("verdicts", "warns"),
    [(("contaminated", "valid", "contaminated"), False), (("contaminated",) * 3, True)],
)
def test_two_contaminated_repeats_in_a_row_are_warned_of(
    verdicts: tuple[str, ...], warns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.progress.name_busiest", lambda *_: ["ffmpeg (1.5 cores, process 7)"])
    file, repeats = io.StringIO(), make_repeats(2)[:3]
    progress = LocalProgress(Console(file=file), repeats, retry_command="RETRY")
    for repeat, verdict in zip(repeats, verdicts, strict=True):
        progress.start_repeat(repeat)
        validity = make_validity() if verdict == "valid" else make_validity(verdict)  # type: ignore[arg-type]
        progress.finish_repeat(repeat, make_result(validity=validity))
    assert ("busiest beside the run: ffmpeg (1.5 cores, process 7)" in file.getvalue()) is warns
    assert file.getvalue().count("when the machine is quiet: RETRY\n") == warns
    assert f"3 done, {verdicts.count('contaminated')} contaminated" in progress.format_line()
