"""Record where attempts ran, one document for each pod whose container has run, and tell how pods were changed.

The informer of pods reports when a container runs; a node is asked for once. So it costs no request per pod.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any

import pydantic
from kubernetes.utils.quantity import parse_quantity

from bench.schema import Node, Placement
from bench.store import parse_placement_key, parse_result_key, placement_key, placements_prefix, results_prefix
from collector.units import join_some
from runner.kubernetes.connection import SHORT_PATIENCE_SECONDS, ApiError, read_item
from runner.kubernetes.names import REPEAT_LABEL, select_run
from runner.kubernetes.objects import PodStatus, describe_node, read_pod_status, read_quantity
from runner.kubernetes.tracked_jobs import OngoingRun, TrackedJob

REFUSALS = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)


@dataclass(kw_only=True)
class Placements:
    """Writes where the attempts of a run ran. `note` is for the main thread; the other methods block."""

    run: OngoingRun
    placed: set[str] = field(default_factory=set)
    """Attempts whose placement is written, or being written."""
    num_pending: int = 0
    """Placements that are being written."""
    _nodes: dict[str, Node | None] = field(default_factory=dict, repr=False)
    """By name. None: it may not be read, or was gone."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def note(self, pod: PodStatus) -> None:
        """Have the placement of a pod written if it runs, or did."""
        if pod.has_run and pod.node and pod.uid not in self.placed:
            self.placed.add(pod.uid)
            self.num_pending += 1
            self.run.dispatcher.record(partial(self.write, pod), self._finish)

    def _finish(self, problem: str) -> None:
        self.num_pending -= 1
        if problem:
            self.run.dispatcher.warn(problem)

    def list_placed(self) -> set[str]:
        keys = map(parse_placement_key, self.run.store.list_keys(placements_prefix(self.run.run_id)))
        return {key.attempt for key in keys if key is not None}

    def write(self, pod: PodStatus) -> str:
        """Write where a pod runs or ran; return in words why that is no placement of the run, else an empty text.

        Anybody may create a pod with the labels of the run. StoreError if the store cannot be used.
        """
        try:
            placement = self._make_placement(pod)
        except ValueError as error:
            return f"pod {pod.name} has the labels of this run, and where it runs is not recorded: {_name_fault(error)}"
        key = placement_key(self.run.run_id, placement.cell_id, placement.repeat, placement.attempt)
        self.run.store.put(key, placement.to_json())
        return ""

    def _make_placement(self, pod: PodStatus) -> Placement:
        """Return where a pod runs; ValueError where its labels name no repeat of a cell, or else it fits none."""
        if not pod.number:
            raise ValueError(f"its label {REPEAT_LABEL} is no number of a repeat")
        cores = float(read_quantity(pod.cpu_request)) if pod.cpu_request else 0.0
        return Placement(
            run_id=self.run.run_id,
            cell_id=pod.cell_id,
            repeat=pod.number,
            attempt=pod.uid,
            pod=pod.name,
            node_name=pod.node,
            image_id=pod.image_id or None,
            qos_class=pod.qos_class or None,
            cpu_request_cores=cores if cores > 0 else None,  # a policy may have set it to 0: none is requested
            other_containers=pod.other_containers,
            node=self._find_node(pod.node),
        )

    def find_instance_type(self, node: str) -> str | None:
        """Return the machine type of a node that was asked for already; None: unknown. Sends no request."""
        known = self._nodes.get(node)
        return None if known is None else known.instance_type

    def complete(self) -> None:
        """Write the placements that results lack and whose pods still exist: an earlier runner may have been killed.

        ApiError if the pods cannot be listed.
        """
        keys = map(parse_result_key, self.run.store.list_keys(results_prefix(self.run.run_id)))
        lacking = {key.attempt for key in keys if key is not None} - self.list_placed()
        if lacking:
            self.write_wanted(select_run(self.run.run_id), lambda attempt: attempt in lacking)

    def write_wanted(self, labels: str, is_wanted: Callable[[str], bool]) -> None:
        """Write the placements of the pods with these labels that still exist; `is_wanted` is asked with their uids.

        ApiError if the pods cannot be listed.
        """
        query, patience = {"labelSelector": labels}, SHORT_PATIENCE_SECONDS
        path = self.run.path("pods")
        for pod in self.run.connection.read_items(path, read_pod_status, query, patience_seconds=patience):
            if pod.has_run and is_wanted(pod.uid):
                self.write(pod)

    def _find_node(self, name: str) -> Node | None:
        with self._lock:  # many pods of one node are placed at once: one asks for it
            if name not in self._nodes:
                path = f"/api/v1/nodes/{name}"
                try:
                    found = self.run.connection.get_object(path, patience_seconds=SHORT_PATIENCE_SECONDS)
                    self._nodes[name] = read_item(found, describe_node, "nodes")
                except ApiError as error:
                    if error.status not in REFUSALS:  # the server is away: asked again for the next pod
                        return None
                    self._nodes[name] = None
            return self._nodes[name]


def _name_fault(error: ValueError) -> str:
    if not isinstance(error, pydantic.ValidationError):
        return str(error)
    fault = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"


# What a cluster changes of pods: policies and webhooks change them, and add containers to them.

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
