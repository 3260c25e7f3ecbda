"""Kubelets for tests: pods on fake nodes run and end as a test decides.

Nodes are objects with capacity; the scheduler, the Job controller and the garbage collector are real. What the
container would do, that is to put its record into the store, is done here as well.
"""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from typing import Any

from bench.errors import EXIT_NODE_FAULT, EXIT_PREEMPTED, EXIT_RESULT_IN_LOG, EXIT_SIGKILL, EXIT_TRY_AGAIN
from bench.schema import Cell, Result, Validity, Verdict
from bench.store import Store, result_key
from factories import make_failed_result, make_result, make_validity
from fake_nodes import FakeNodes, format_now
from runner.kubernetes.connection import ApiError, Connection

OWN_CONTAINERS = r"bench|tenant-\d+"
"""Those that the tool asks for; a pod with others goes on when they have ended."""
# How a container ends that leaves no record: exit code, reason, the log's tail.
EXITS: dict[str, tuple[int, str, str]] = {
    "no-record": (0, "Completed", ""),
    "oom": (137, "OOMKilled", "out of memory"),
    "user-error": (2, "Error", "Traceback\nerror: BENCH_STORE: not set"),
    "in-log": (EXIT_RESULT_IN_LOG, "Error", "BENCH_RESULT ..."),
    "crash": (139, "Error", "Segmentation fault"),
    "node-fault": (EXIT_NODE_FAULT, "Error", "error: fault of this machine: device: GPU is lost"),
    "busy": (EXIT_TRY_AGAIN, "Error", "error: GPU GPU-1 is in use by others"),
    "over-limit": (EXIT_PREEMPTED, "Error", "preempted: ended by SIGTERM"),
}
WAITING: dict[str, tuple[str, str]] = {
    "image": ("ImagePullBackOff", 'Back-off pulling image "x": not found'),
    "secret": ("CreateContainerConfigError", 'secret "benchmatrix-store" not found'),
    "stuck": ("ContainerCreating", ""),
    "no-device": (
        "CreateContainerError",
        'failed to generate container "5d" spec: failed to apply OCI options: CDI device injection failed: '
        "unresolvable CDI devices nvidia.com/gpu=GPU-1",
    ),
}
Pod = dict[str, Any]
IMAGE_ID = f"registry.example/benchmatrix/pytorch@sha256:{'5' * 64}"
"""What the nodes say that they ran, whatever the tag."""
VERDICTS: dict[str, tuple[Verdict, ...]] = {"contaminated": ("contaminated",)}
"""On the measurements of containers that end well; valid where there is none."""


def read_variables(pod: Pod) -> dict[str, str]:
    """Return the environment of a pod's container, as its kubelet would make it of what stands there."""
    fields = {"metadata.uid": pod["metadata"]["uid"], "spec.nodeName": pod["spec"].get("nodeName", "")}
    fields |= {f"metadata.labels['{name}']": value for name, value in pod["metadata"].get("labels", {}).items()}
    variables = {}
    for entry in pod["spec"]["containers"][0]["env"]:
        value = entry["value"] if "value" in entry else fields[entry["valueFrom"]["fieldRef"]["fieldPath"]]
        variables[entry["name"]] = value.replace("$$", "$")
    return variables


@dataclass(kw_only=True)
class FakeKubelet:
    """Stands for every kubelet of the cluster. `decide` says how a pod ends; it may block."""

    connection: Connection
    store: Store
    decide: Callable[[Pod], str] = lambda pod: "ok"
    run_seconds: float | Callable[[Pod], float] = 0.0
    slow_down: Callable[[Cell, int], float] = lambda cell, repeat: 1.0
    """By what a repeat's steps take longer than 0.1 s."""
    killed_exit_code: int = EXIT_SIGKILL
    """That of a container whose pod somebody deleted."""
    num_threads: int = 8
    """How many pods the kubelets see to at once; each of them needs two requests or three, one after the other."""
    may_end: threading.Event = field(default_factory=threading.Event)
    """While a test has it cleared, pods run on, up to `num_threads` - 1 of them."""
    measured: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(run id, cell id/repeat) of the pods whose container ended by itself, as often as it did."""
    _fake_nodes: FakeNodes = field(init=False)
    _seen: set[str] = field(default_factory=set)
    _killed: set[str] = field(default_factory=set)
    """Pods that were deleted while they ran: they write no record."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pool: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self._fake_nodes = FakeNodes(connection=self.connection)
        self._pool = ThreadPoolExecutor(self.num_threads, "kubelet")
        self.may_end.set()

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes that are not silent."""
        return self._fake_nodes.names

    def start(self) -> None:
        """Run pods until `stop`."""
        self._fake_nodes.start()
        threading.Thread(target=self._follow, name="kubelet", daemon=True).start()

    def stop(self) -> None:
        """End; pods stay as they are."""
        self._stop.set()
        self.may_end.set()
        self._fake_nodes.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def add_node(self, name: str, **options: Any) -> None:
        """Register a node; see FakeNodes.add."""
        self._fake_nodes.add(name, **options)

    def forget_node(self, name: str) -> None:
        """Let a node go silent, as one that lost its power does."""
        self.nodes.remove(name)

    def put_event(self, pod: Pod, reason: str, message: str) -> None:
        """Record a warning about a pod, as a kubelet does."""
        metadata = pod["metadata"]
        body = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"generateName": "event-", "namespace": metadata["namespace"]},
            "involvedObject": {"kind": "Pod", **{key: metadata[key] for key in ("name", "namespace", "uid")}},
            "type": "Warning",
            "reason": reason,
            "message": message,
            "firstTimestamp": format_now(),
            "lastTimestamp": format_now(),
            "source": {"component": "kubelet"},
        }
        path = f"/api/v1/namespaces/{metadata['namespace']}/events"
        self.connection.request("create", path, body=json.dumps(body).encode())

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                listing = json.loads(self.connection.request("list", "/api/v1/pods"))
                for pod in listing["items"]:
                    self._meet(pod)
                version = listing["metadata"]["resourceVersion"]
                query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "120"}
                with self.connection.stream("/api/v1/pods", query, idle_seconds=130) as lines:
                    for line in filter(None, lines):
                        event = json.loads(line)
                        if self._stop.is_set():
                            return
                        if event["type"] in ("ADDED", "MODIFIED"):
                            self._meet(event["object"])
            except (ApiError, ValueError):
                self._stop.wait(0.5)

    def _meet(self, pod: Pod) -> None:
        name, uid = pod["spec"].get("nodeName"), pod["metadata"]["uid"]
        if name not in self.nodes or "benchmatrix/run-id" not in pod["metadata"].get("labels", {}):
            return
        is_leaving = "deletionTimestamp" in pod["metadata"]
        key = f"{uid}-leaving" if is_leaving else uid
        if key in self._seen:
            return
        self._seen.add(key)
        with suppress(RuntimeError):  # stopped meanwhile
            self._pool.submit(self._quietly, self._remove if is_leaving else self._run, pod)

    def _quietly(self, act: Callable[[Pod], None], pod: Pod) -> None:
        try:
            act(pod)
        except ApiError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                print(f"fake kubelet: {error.status} {error.message}")

    def _run(self, pod: Pod) -> None:
        behaviour = self.decide(pod)
        if behaviour in WAITING:
            reason, message = WAITING[behaviour]
            self._set_state(pod, "Pending", {"waiting": {"reason": reason, "message": message}})
            return
        if behaviour == "refused":
            status = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "Allocate failed: no device"}
            self._set_status(pod, status)
            return
        started = format_now()
        seconds = self.run_seconds(pod) if callable(self.run_seconds) else self.run_seconds
        if behaviour == "hang" or seconds or not self.may_end.is_set():
            self._set_state(pod, "Running", {"running": {"startedAt": started}})
        if behaviour == "hang":
            return
        self.may_end.wait()
        if seconds:
            later = threading.Timer(
                seconds, self._quietly, (partial(self._end, behaviour=behaviour, started=started), pod)
            )
            later.daemon = True
            later.start()
        else:
            self._end(pod, behaviour, started)

    def _end(self, pod: Pod, behaviour: str, started: str) -> None:
        labels = pod["metadata"]["labels"]
        if pod["metadata"]["uid"] in self._killed:
            return
        code, reason, message = EXITS.get(behaviour, (0, "Completed", ""))
        if behaviour in ("ok", "contaminated", "failed-record"):
            is_failed = behaviour == "failed-record"
            self._put_record(pod, is_ok=not is_failed, validity=make_validity(*VERDICTS.get(behaviour, ())))
            code, reason = (1, "Error") if is_failed else (0, "Completed")
        with self._lock:
            self.measured[
                labels["benchmatrix/run-id"], f"{labels['benchmatrix/cell-id']}/{labels['benchmatrix/repeat']}"
            ] += 1
        terminated = {
            "exitCode": code,
            "reason": reason,
            "message": message,
            "startedAt": started,
            "finishedAt": format_now(),
        }
        # As localStorageEviction of a kubelet does: no condition DisruptionTarget.
        over = {"reason": "Evicted", "message": 'Usage of EmptyDir volume "tmp" exceeds the limit "8Gi". '}
        more = over if behaviour == "over-limit" else {}
        self._set_state(pod, "Failed" if code else "Succeeded", {"terminated": terminated}, **more)

    def _put_record(self, pod: Pod, *, is_ok: bool, validity: Validity) -> None:
        variables = read_variables(pod)
        cell = Cell.model_validate_json(variables["BENCH_CELL"])
        repeat = int(variables["BENCH_REPEAT"])
        step = 0.1 * self.slow_down(cell, repeat)
        steps, warmup = ((step,) * number for number in (cell.num_steps, cell.num_warmup_steps))
        make: Callable[..., Result] = make_result if is_ok else make_failed_result
        now = datetime.now(UTC)
        result = make(
            cell,
            **({"step_seconds": steps, "warmup_step_seconds": warmup, "validity": validity} if is_ok else {}),
            run_id=variables["BENCH_RUN_ID"],
            repeat=repeat,
            attempt=variables["BENCH_ATTEMPT"],
            started_at=now - timedelta(seconds=60),
            finished_at=now,
        )
        key = result_key(result.run_id, result.cell_id, result.repeat, result.attempt)
        self.store.put(key, result.to_json())

    def _remove(self, pod: Pod) -> None:
        """End a pod that somebody deleted: a kubelet kills the container, says so, and lets the object go."""
        self._killed.add(pod["metadata"]["uid"])
        if pod["status"].get("phase") not in ("Succeeded", "Failed"):
            times = {"startedAt": format_now(), "finishedAt": format_now()}
            killed = {"exitCode": self.killed_exit_code, "reason": "Error", **times}
            self._set_state(pod, "Failed", {"terminated": killed})
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        self.connection.request("delete", path, query={"gracePeriodSeconds": "0"})

    def _set_state(self, pod: Pod, phase: str, state: dict[str, Any], **more: str) -> None:
        """Set the state of the container `bench`, and of the pod; containers that a policy added run on to its end."""
        added = list_added(pod)
        is_killed = "deletionTimestamp" in pod["metadata"]
        if added and phase in ("Succeeded", "Failed") and not is_killed and not more:
            phase = "Running"
        is_running = "running" in state
        container = {
            "name": "bench",
            "image": pod["spec"]["containers"][0]["image"],
            "imageID": IMAGE_ID,
            "ready": is_running,
            "restartCount": 0,
            "state": state,
        }
        ready = {"type": "Ready", "status": str(is_running), "lastTransitionTime": format_now()}
        others = [describe_added(found, state, is_running=phase == "Running") for found in added]
        status = {
            "phase": phase,
            "startTime": format_now(),
            "containerStatuses": [container, *others],
            "conditions": [ready],
        }
        self._set_status(pod, status | more)

    def _set_status(self, pod: Pod, status: dict[str, Any]) -> None:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
        body = {"metadata": {"uid": metadata["uid"]}, "status": status}
        content_type = "application/strategic-merge-patch+json"
        while True:
            try:
                self.connection.request("patch", path, body=json.dumps(body).encode(), content_type=content_type)
                return
            except ApiError as error:
                # The scheduler or a controller wrote it meanwhile; for a pod with another uid there is nothing to set.
                if error.status != HTTPStatus.CONFLICT or "uid" in error.message.lower():
                    raise


def list_added(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the containers of a pod that the tool did not ask for."""
    return [found for found in pod["spec"]["containers"] if not re.fullmatch(OWN_CONTAINERS, found["name"])]


def describe_added(container: dict[str, Any], state: dict[str, Any], *, is_running: bool) -> dict[str, Any]:
    """Return the status of such a container. `state`: that of the container that measures; `is_running`: the pod's."""
    own = {"running": {"startedAt": format_now()}} if is_running and "waiting" not in state else state
    known = {"name": container["name"], "image": container["image"], "imageID": "", "ready": True, "restartCount": 0}
    return known | {"state": own}
