"""runner.kubernetes.progress as JSON lines: the events are those of runs on this machine."""

import io
import json
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from factories import make_cell, make_failed_result, make_result
from ongoing_runs import track
from runner.kubernetes.progress import ClusterProgress
from runner.kubernetes.tracked_jobs import TrackedJobs
from runner.run_events import RunEvent, RunEvents

CELL = make_cell()


def read_events(file: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.getvalue().splitlines()]


def test_every_line_is_an_event_of_the_schema() -> None:
    file, tracked = io.StringIO(), track("cpu", 1)
    with ClusterProgress(Console(file=file, width=40), as_json=True) as progress:
        progress.tick(TrackedJobs([tracked]))  # too early for a line of progress
        tracked.disrupted_pod_uids = frozenset({"gone"})
        progress.finish(tracked, make_result(CELL, step_seconds=(0.05,)))
        progress.finish(tracked, make_failed_result(CELL, message="ended by SIGSEGV [core\ndumped]"))
        progress.warn("no node \x1b[31mfits")

    first, second, third = (RunEvent.model_validate(event) for event in read_events(file))
    assert (first.event, first.job, first.status, first.step_seconds) == ("finished", tracked.name, "ok", 0.05)
    assert (first.preempted, first.error) == (1, None)
    assert (second.status, second.step_seconds) == ("failed", None)
    assert second.error == "ended by SIGSEGV [core\ndumped]"
    assert (third.event, third.message) == ("warning", "no node \x1b[31mfits")


def test_a_repeat_that_ended_has_the_same_fields_wherever_it_was_measured() -> None:
    here, there = io.StringIO(), io.StringIO()
    result = make_result(CELL)

    RunEvents(Console(file=here)).finish(result)
    with ClusterProgress(Console(file=there), as_json=True) as progress:
        progress.finish(track("cpu", 1), result)

    (on_machine,), (on_cluster,) = read_events(here), read_events(there)
    assert on_machine.keys() == on_cluster.keys()
    assert on_machine == on_cluster | {"job": None}


def test_a_scrape_finds_the_counts_of_the_run_and_of_its_requests() -> None:
    connection: Any = SimpleNamespace(num_requests={"list jobs": 3}, rate_limiter=SimpleNamespace(num_allowed=4))
    with ClusterProgress(Console(file=io.StringIO()), as_json=False) as progress:
        registry = progress.serve_metrics(connection, 0)
        progress.tick(TrackedJobs([track("cpu", 1)]))
        progress.finish(track("cpu", 1), make_result(CELL))
        progress.warn("no node fits")

    found = {
        name: registry.get_sample_value(f"benchmatrix_{name}", labels)
        for name, labels in {
            "repeats": {"state": "to_submit"},
            "results_total": {"status": "ok"},
            "api_requests_total": {"request": "list jobs"},
            "api_parallel_requests": {},
            "warnings_total": {},
        }.items()
    }
    assert list(found.values()) == [1, 1, 3, 4, 1]
