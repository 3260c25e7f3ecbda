"""runner.reporting: where a finished run's report is put, and in which order."""

from datetime import UTC, datetime, timedelta

from bench.schema import Ending, Run
from bench.store import LATEST_REPORT_KEY, LATEST_RUN_KEY, Store
from factories import make_cell, make_run
from runner.reporting import publish_report

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CELL = make_cell()


def make_scheduled_run(run_id: str, *, hours: float = 0.0) -> Run:
    return make_run(cells=[CELL], run_id=run_id).model_copy(update={"created_at": NOON + timedelta(hours=hours)})


def publish(store: Store, run: Run) -> list[str]:
    ending = Ending(published_at=NOON, num_repeats={"ok": 1}, missing=())
    return publish_report(store, run, f"<html>{run.run_id}".encode(), ending)


def read_latest(store: Store) -> Run:
    return Run.model_validate_json(store.get(LATEST_RUN_KEY))


def test_the_document_that_names_the_run_is_written_last(store: Store) -> None:
    keys = publish(store, make_scheduled_run("one"))

    assert keys == ["runs/one/report.html", LATEST_REPORT_KEY, LATEST_RUN_KEY]
    assert b"<html>one" == store.get(LATEST_REPORT_KEY) == store.get("runs/one/report.html")
    assert read_latest(store).ending is not None


def test_a_newer_run_takes_the_place_and_an_older_one_does_not(store: Store) -> None:
    publish(store, make_scheduled_run("monday"))
    publish(store, make_scheduled_run("tuesday", hours=24))
    keys = publish(store, make_scheduled_run("monday-again", hours=1))  # began before Tuesday's, ended after it

    assert keys == ["runs/monday-again/report.html"]
    assert read_latest(store).run_id == "tuesday"
    assert store.get(LATEST_REPORT_KEY) == b"<html>tuesday"


def test_a_latest_run_of_another_version_is_replaced(store: Store) -> None:
    store.put(LATEST_RUN_KEY, b'{"schema_version": 99}')
    publish(store, make_scheduled_run("one"))
    assert read_latest(store).run_id == "one"
