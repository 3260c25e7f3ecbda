"""Compares pods with what their Job asked for: policies and webhooks change pods too, and add containers to them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any

from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.changed_jobs import describe_changes
from runner.kubernetes.connection import SHORT_PATIENCE_SECONDS, Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.object_status import PodStatus
from runner.kubernetes.rendering.job_template import JobRenderer
from runner.kubernetes.tracked_jobs import TrackedJob

OFTEN_ADDED = ("affinity", "nodeSelector", "tolerations", "terminationGracePeriodSeconds")
"""What says where a pod goes, and differs from Job to Job or is added to by the cluster itself."""


@dataclass(kw_only=True)
class ChangedPods:
    """Warns of how a pod of each kind of cell differs from its Job's template; on the main thread."""

    dispatcher: Dispatcher
    connection: Connection
    namespace: str
    renderer: JobRenderer
    _compared: set[tuple[object, ...]] = field(default_factory=set, repr=False)

    def note(self, tracked: TrackedJob, pod: PodStatus) -> None:
        """Have a pod compared, if none of its kind was."""
        cell = tracked.repeat.planned.cell
        kind = (tracked.node_kind, cell.framework, cell.num_gpus, cell.tenants)
        if kind in self._compared:
            return
        self._compared.add(kind)
        self.dispatcher.request(partial(self._compare, tracked, pod), partial(self._tell, kind, pod))

    def _compare(self, tracked: TrackedJob, pod: PodStatus) -> str | None:
        """Return in words how a pod differs from what was asked for; None where it is gone or may not be read now."""
        path, query = f"/api/v1/namespaces/{self.namespace}/pods", {"fieldSelector": f"metadata.name={pod.name}"}
        try:
            found = self.connection.read_items(path, dict, query, patience_seconds=SHORT_PATIENCE_SECONDS)
        except ApiError as error:
            if error.status in (HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED):
                raise
            return None
        job = json.loads(self.renderer.render(tracked.repeat.planned, tracked.key))
        return describe_pod_changes(job["spec"]["template"], found[0]) if found else None

    def _tell(self, kind: tuple[object, ...], pod: PodStatus, changes: str | None) -> None:
        if changes is None:
            self._compared.discard(kind)
        elif changes:
            self.dispatcher.warn(
                f"an admission webhook or policy of the cluster changed pod {pod.name}: {changes}; what is measured "
                "may not be what was planned, and a container that was added takes CPU and memory beside it",
                f"changed pods {kind}",
            )


def describe_pod_changes(template: Mapping[str, Any], pod: Mapping[str, Any]) -> str:
    """Return in words how a pod differs from the template of its Job; empty if it does not."""
    return describe_changes(_pick(template), _pick(pod))


def _pick(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a pod, or of its template, is compared."""
    return {"spec": {key: value for key, value in pod["spec"].items() if key not in OFTEN_ADDED}}
