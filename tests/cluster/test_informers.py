"""Informers of a real API server end when they are asked to, though nothing happens in the cluster."""

import queue
import threading

import pytest
from runs import DEADLINE_SECONDS

from runner.kubernetes import informers
from runner.kubernetes.connection import Connection
from runner.kubernetes.informers import Informer, Listed, Notification
from runner.kubernetes.objects import JobStatus, read_job_status


@pytest.mark.parametrize("is_watching", [True, False], ids=["while it waits for a line", "before its watch"])
def test_stop_ends_a_silent_watch(
    is_watching: bool, connection: Connection, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would stay open for WATCH_SECONDS, with its thread and its TLS connection."""
    monkeypatch.setattr(informers, "WATCH_SECONDS", int(2 * DEADLINE_SECONDS))
    monkeypatch.setattr(informers, "IDLE_SECONDS", 2 * DEADLINE_SECONDS)
    path = f"/apis/batch/v1/namespaces/{place}/jobs"
    informer = Informer(connection=connection, path=path, labels="none=such", read=read_job_status)
    told: queue.Queue[Notification[JobStatus]] = queue.Queue()
    may_watch = threading.Event()

    def note(notification: Notification[JobStatus]) -> None:
        told.put(notification)
        if not is_watching:
            may_watch.wait()

    num_before = connection.num_requests["watch jobs"]
    thread = threading.Thread(target=informer.run, args=(note,), daemon=True)
    thread.start()
    assert told.get(timeout=DEADLINE_SECONDS) == Listed(())
    while is_watching and informer._open is None:
        may_watch.wait(0.01)
    informer.stop()
    may_watch.set()

    thread.join(DEADLINE_SECONDS)
    assert not thread.is_alive()
    assert told.empty()
    assert connection.num_requests["watch jobs"] - num_before == is_watching
