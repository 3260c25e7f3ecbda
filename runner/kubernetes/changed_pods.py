"""Compare pods with what their Job asked for: policies and webhooks change pods, and add containers to them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any

from kubernetes.utils.quantity import parse_quantity

from collector.units import join_some
from runner.kubernetes.connection import SHORT_PATIENCE_SECONDS, ApiError
from runner.kubernetes.objects import PodStatus
from runner.kubernetes.tracked_jobs import OngoingRun, TrackedJob

MAX_NAMED = 5
MAX_VALUE_CHARACTERS = 60


def describe_changes(asked: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    """Return in words what was changed, removed or, of containers, added; empty if nothing was."""
    changes = list(_find_changes("", asked, made))
    return join_some(changes, MAX_NAMED, separator="; ")


def _find_changes(place: str, asked: Any, made: Any) -> Iterator[str]:
    """Yield a line for each difference; what the API server fills in by itself is none."""
    if isinstance(asked, Mapping) and isinstance(made, Mapping):
        if "containers" in asked:  # a container among these may run beside the others: a sidecar of Kubernetes' own
            asked = {"initContainers": [], **asked}
        for key, value in asked.items():
            if key in made:
                yield from _find_changes(f"{place}.{key}" if place else key, value, made[key])
            elif value not in (None, "", 0, False, {}, []):  # the API server leaves these out
                yield f"{place}.{key} was removed"
    elif isinstance(asked, list) and isinstance(made, list):
        yield from _find_changed_items(place, asked, made)
    elif asked != made and not _is_same_amount(asked, made):
        yield f"{place} is {_cut(made)} instead of {_cut(asked)}"


def _find_changed_items(place: str, asked: Sequence[Any], made: Sequence[Any]) -> Iterator[str]:
    names = [item.get("name") if isinstance(item, Mapping) else None for item in (*asked, *made)]
    if all(isinstance(name, str) for name in names):  # told apart by their names, as Kubernetes does
        by_name = {item["name"]: item for item in made}
        yield from _find_changes(place, {item["name"]: item for item in asked}, by_name)
        if place.endswith("ontainers"):
            yield from (f"{place}.{name} was added" for name in by_name.keys() - {item["name"] for item in asked})
    elif len(asked) != len(made):
        yield f"{place} has {len(made)} items instead of {len(asked)}"
    else:
        for number, (one, other) in enumerate(zip(asked, made, strict=True)):
            yield from _find_changes(f"{place}[{number}]", one, other)


def _is_same_amount(asked: object, made: object) -> bool:
    try:
        return bool(parse_quantity(asked) == parse_quantity(made))  # type: ignore[no-untyped-call]
    except (ValueError, TypeError, ArithmeticError):
        return False


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[: MAX_VALUE_CHARACTERS - 1]}…"


OFTEN_ADDED = ("affinity", "nodeSelector", "tolerations", "terminationGracePeriodSeconds")
"""What says where a pod goes, and differs from Job to Job or is added to by the cluster itself."""


@dataclass(kw_only=True)
class ChangedPods:
    """Warns of how a pod of each kind of cell differs from its Job's template; on the main thread."""

    run: OngoingRun
    _compared: set[tuple[object, ...]] = field(default_factory=set, repr=False)

    def note(self, tracked: TrackedJob, pod: PodStatus) -> None:
        """Have a pod compared, if none of its kind was."""
        cell = tracked.repeat.planned.cell
        kind = (tracked.node_kind, cell.framework, cell.num_gpus, cell.tenants)
        if kind in self._compared:
            return
        self._compared.add(kind)
        self.run.dispatcher.request(partial(self._compare, tracked, pod), partial(self._tell, kind, pod))

    def _compare(self, tracked: TrackedJob, pod: PodStatus) -> str | None:
        """Return in words how a pod differs from what was asked for; None where it is gone or may not be read now."""
        path, query = self.run.path("pods"), {"fieldSelector": f"metadata.name={pod.name}"}
        try:
            found = self.run.connection.read_items(path, dict, query, patience_seconds=SHORT_PATIENCE_SECONDS)
        except ApiError as error:
            if error.status in (HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED):
                raise
            return None
        job = json.loads(self.run.renderer.render(tracked.repeat.planned, tracked.key))
        return describe_pod_changes(job["spec"]["template"], found[0]) if found else None

    def _tell(self, kind: tuple[object, ...], pod: PodStatus, changes: str | None) -> None:
        if changes is None:
            self._compared.discard(kind)
        elif changes:
            self.run.dispatcher.warn(
                f"an admission webhook or policy of the cluster changed pod {pod.name}: {changes}; what is measured "
                "may not be what was planned, and a container that was added takes CPU and memory beside it",
                f"changed pods {kind}",
            )


def describe_pod_changes(template: Mapping[str, Any], pod: Mapping[str, Any]) -> str:
    return describe_changes(_pick(template), _pick(pod))


def _pick(pod: Mapping[str, Any]) -> dict[str, Any]:
    return {"spec": {key: value for key, value in pod["spec"].items() if key not in OFTEN_ADDED}}
