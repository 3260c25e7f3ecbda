"""Record confirmed regressions of a night as Kubernetes events, where `kubectl get events` shows them."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.connection import Connection

if TYPE_CHECKING:
    from collector.nights.records import RecordedChange

REASON = "PerformanceRegression"
COMPONENT = "benchmatrix-watch"
MAX_MESSAGE_CHARACTERS = 1024
"""The longest note of an event, 1 kB: https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/"""


def record_regressions(
    connection: Connection,
    namespace: str,
    run_id: str,
    changes: "Sequence[RecordedChange]",
    warn: Callable[[str], None],
) -> None:
    """Create one event for each regression, about the Job `run_id`, which a scheduled run is named after.

    Its name follows from the change: a runner that repeats the request finds the event there. Events are a courtesy:
    what the API server refuses is a warning.
    """
    for change in changes:
        body = json.dumps(make_event(namespace, run_id, change, datetime.now(UTC))).encode()
        try:
            connection.request("create", f"/api/v1/namespaces/{namespace}/events", body=body)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                warn(f"the event of a regression was not recorded: {error.message}")


def make_event(namespace: str, run_id: str, change: "RecordedChange", now: datetime) -> dict[str, Any]:
    """Return the body of the Kubernetes Event (v1, type Warning) that reports a confirmed regression.

    `run_id`: the id of the night's run, after which the Job is named that the event is about. `now`: when it is
    reported.
    """
    suspicion, decision = change.suspicion, change.decision
    shift = suspicion.shift if decision is None or decision.shift is None else decision.shift
    what = suspicion.cell_ids[0] if suspicion.num_cells == 1 else f"{suspicion.num_cells} cells on {suspicion.hardware}"
    beside = "; ".join(f"{part.what} {part.before} -> {part.after}" for part in suspicion.changes)
    message = f"{what}: step time {100 * (shift.ratio - 1):+.1f} % since {suspicion.first_run_id}. {beside}"
    time = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"benchmatrix-{suspicion.matrix[:40]}-{suspicion.change_id}", "namespace": namespace},
        "involvedObject": {"apiVersion": "batch/v1", "kind": "Job", "name": run_id, "namespace": namespace},
        "reason": REASON,
        "message": message[:MAX_MESSAGE_CHARACTERS],
        "type": "Warning",
        "count": 1,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "source": {"component": COMPONENT},
    }
