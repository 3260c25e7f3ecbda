"""The API server takes the event of a confirmed regression, and keeps one of it."""

from night_changes import make_change

from runner.kubernetes.connection import Connection
from runner.kubernetes.night_events import REASON, record_regressions


def test_a_regression_is_one_event_however_often_it_is_recorded(connection: Connection, namespace: str) -> None:
    warnings: list[str] = []
    for _ in range(2):
        record_regressions(connection, namespace, "night-2", [make_change()], warnings.append)

    events = connection.list_items(f"/api/v1/namespaces/{namespace}/events")

    assert warnings == []
    assert [(event["reason"], event["involvedObject"]["name"]) for event in events] == [(REASON, "night-2")]
    assert "step time +5.0 % since night-2" in events[0]["message"]
