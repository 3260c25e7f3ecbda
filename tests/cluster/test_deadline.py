"""A run whose time is up, on a real API server: what had ended has its record, what had not is gone for good."""

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console
from runs import DEADLINE_SECONDS, Observed, Setup, Site, make_cells, wait_for

from fake_kubelet import FakeKubelet
from faulty_server import Fault, FaultyServer
from runner.kubernetes import recording, session, tracked_jobs
from runner.kubernetes.connection import Connection

DAY_SECONDS = 86_400.0


def pass_deadline_when(is_time_up: Callable[[], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    late = timedelta(seconds=2 * DAY_SECONDS)
    monkeypatch.setattr(session, "read_clock", lambda: datetime.now(UTC) + (late if is_time_up() else timedelta()))


def measure(setup: Setup, connection: Connection, begun_at: datetime | None = None) -> Observed:
    """Measure until the deadline, a day after the run began, as the command line does."""
    observed = setup.observed = Observed()
    setup.run = setup.run.model_copy(update={"created_at": begun_at or datetime.now(UTC)})
    run = replace(setup.make_cluster_run(), deadline_seconds=DAY_SECONDS)
    run.measure(setup.run, connection, observed, Console(quiet=True))
    return observed


def list_unfinished(setup: Setup) -> list[str]:
    return [
        job["metadata"]["name"]
        for job in setup.list_jobs()
        if not job["status"].get("conditions") and "deletionTimestamp" not in job["metadata"]
    ]


def test_what_has_not_ended_is_deleted_and_nothing_comes_after_it(
    site: Site, faulty: FaultyServer, through: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the Jobs cannot be created while the API server refuses requests, also when the deadline has passed."""
    setup = site.make_setup(make_cells(4))
    asked = itertools.count()
    is_refused = threading.Event()

    def refuse_some(method: str, path: str) -> Fault | None:
        if method != "POST" or not path.partition("?")[0].endswith("/jobs") or next(asked) < 2:
            return None
        is_refused.set()
        return "too-many-requests"

    faulty.choose_fault = refuse_some
    pass_deadline_when(is_refused.is_set, monkeypatch)

    observed = measure(setup, through)
    faulty.choose_fault = lambda method, path: None

    assert observed.results == []
    wait_for(lambda: not setup.list_jobs(), "the Jobs to go")
    assert list_unfinished(setup) == []


def test_what_had_ended_has_its_record_before_the_report_is_made(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is up while the logs of two cells are still asked for, which no kubelet hands out here."""
    monkeypatch.setattr(recording, "LOG_PATIENCE_SECONDS", 3.0)
    setup = site.make_setup(make_cells(3))
    kubelet: FakeKubelet = site.start_kubelet(
        lambda pod: "in-log" if len(kubelet.measured) < 2 else "hang", num_nodes=1
    )
    pass_deadline_when(lambda: setup.observed.jobs.count("recording", "done") >= 2, monkeypatch)

    measure(setup, site.connection)

    assert list(setup.count_records().values()) == [1, 1]
    wait_for(lambda: len(setup.list_jobs()) == 2, "the third Job to go")
    assert list_unfinished(setup) == []


def test_a_runner_that_takes_the_place_of_another_gets_no_time_of_its_own(site: Site) -> None:
    setup = site.make_setup(make_cells(2))

    measure(setup, site.connection, begun_at=datetime.now(UTC) - timedelta(seconds=2 * DAY_SECONDS))

    assert setup.list_jobs() == []


def test_a_log_that_an_absent_api_server_does_not_hand_out_is_waited_for(
    site: Site, faulty: FaultyServer, through: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is given up only when the server answers that the log does not exist."""
    monkeypatch.setattr(recording, "LOG_PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(tracked_jobs, "STORE_PAUSE_SECONDS", 0.1)
    setup = site.make_setup(make_cells(1))
    site.start_kubelet(lambda pod: "in-log", num_nodes=1)
    faulty.choose_fault = lambda method, path: "cut-off" if "/log" in path else None

    runner = setup.start(through)
    wait_for(lambda: faulty.num_faults >= 3, "requests for the log")
    assert not setup.count_records()
    faulty.choose_fault = lambda method, path: None
    (result,) = runner.result(DEADLINE_SECONDS).results

    assert result.error is not None
    assert (result.status, result.error.kind) == ("failed", "infrastructure")
