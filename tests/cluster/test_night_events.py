"""The API server takes the event of a confirmed regression, and keeps one of it."""

from datetime import UTC, datetime

from bench.schema import NightChange, Shift, Suspicion
from collector.nights.records import RecordedChange
from factories import make_cell
from runner.kubernetes.connection import Connection
from runner.kubernetes.night_events import REASON, record_regressions

CHANGE = RecordedChange(
    suspicion=Suspicion(
        matrix="nightly",
        change_id="1a2b3c4d",
        direction="slower",
        cell_ids=(make_cell().cell_id,),
        num_cells=1,
        device="cpu",
        hardware="a CPU",
        night_run_id="night-2",
        first_run_id="night-2",
        seen_at=datetime(2026, 3, 1, tzinfo=UTC),
        shift=Shift(ratio=1.05, low=1.03, high=1.07, p_value=1e-6, num_nights_before=9, num_nights_after=1),
        night_deviation=0.01,
        changes=(NightChange(what="image", before="x" * 900, after="y" * 900),),
    )
)


def test_a_regression_is_one_event_however_often_it_is_recorded(connection: Connection, namespace: str) -> None:
    warnings: list[str] = []
    for _ in range(2):
        record_regressions(connection, namespace, "night-2", [CHANGE], warnings.append)

    events = connection.list_items(f"/api/v1/namespaces/{namespace}/events")

    assert warnings == []
    assert [(event["reason"], event["involvedObject"]["name"]) for event in events] == [(REASON, "night-2")]
    assert "step time +5.0 % since night-2" in events[0]["message"]
