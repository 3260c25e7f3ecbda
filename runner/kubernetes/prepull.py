"""Have the nodes pull the images of a run before its first cell, so that no cell is measured while its node pulls.

One pod a node: after each one that found a node the next is created, until one finds none. The nodes of a pool need not
be listed for that, which a Role cannot allow. The Jobs end by themselves, should the runner be killed.
"""

import json
import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from runner.kubernetes.answers import ApiObject
from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.connection import Connection
from runner.kubernetes.object_status import PodStatus, read_pod_status
from runner.kubernetes.pod_failures import (
    CONFIGURATION_REASONS,
    PASSING_IMAGE_REASONS,
    PERMANENT_IMAGE_ERROR,
    PERMANENT_IMAGE_REASONS,
)
from runner.kubernetes.rendering.job_name import POOL_LABEL
from runner.kubernetes.rendering.prepull_job import list_images, make_prepull_job, select_prepull

POLL_SECONDS = 0.25
"""How often the pods are listed."""
NO_POD_SECONDS = 30.0
"""A Job without a pod for so long is not going to get one: a quota, an admission webhook, or Kueue holds it."""
TOKEN_BYTES = 4

Manifest = Mapping[str, Any]


@dataclass(kw_only=True)
class PrepulledPool:
    """The search for the nodes of one pool, and what their pods have come to."""

    device: str
    cells: Sequence[Manifest]
    """Jobs of cells, one for each image."""
    is_complete: bool = False
    """There is no further node that takes a pod."""
    newest: str | None = None
    """The Job whose pod has no node yet."""
    newest_since: float = 0.0
    pods: list[PodStatus] = field(default_factory=list)
    """Those that have a node."""
    errors: dict[str, str] = field(default_factory=dict)
    """Why pods do not get on, by their uid."""
    reason: str = ""
    """Why the search ended without a pod that finds no node; empty: it did not."""

    @property
    def num_ready(self) -> int:
        """How many nodes have all images: the last container of their pod runs, or did."""
        return sum(pod.phase in ("Running", "Succeeded") for pod in self.pods)

    @property
    def is_done(self) -> bool:
        """Whether no pod is to come, and each has pulled or cannot."""
        return self.is_complete and all(pod.phase != "Pending" or pod.uid in self.errors for pod in self.pods)

    def describe(self, seconds: float) -> str:
        """Return a line for the user."""
        num_images = len(list_images(self.cells))
        why = self.reason or next(iter(self.errors.values()), "")
        line = (
            f"pre-pull, pool {self.device}: {self.num_ready} of {len(self.pods)} nodes with room have the "
            f"{num_images} {'image' if num_images == 1 else 'images'} after {seconds:.0f} s"
        )
        if self.num_ready == len(self.pods) and not why:
            return line
        return f"{line}; the others pull with their first cell{f' ({why})' if why else ''}"


@dataclass(kw_only=True)
class Prepuller:
    """Pulls the images of a run onto the nodes of its pools. Used once."""

    connection: Connection
    namespace: str
    run_id: str
    cells: Sequence[Manifest]
    """Jobs of cells, one for each pool and image, as they are going to be created."""
    wait_seconds: float
    say: Callable[[str], None]
    _jobs: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Pull, for `wait_seconds` at the most, and delete the pods. A cluster that refuses is no error of the run."""
        devices = dict.fromkeys(cell["metadata"]["labels"][POOL_LABEL] for cell in self.cells)
        pools = [
            PrepulledPool(
                device=device,
                cells=[cell for cell in self.cells if cell["metadata"]["labels"][POOL_LABEL] == device],
            )
            for device in devices
        ]
        started = time.monotonic()
        try:
            # What an earlier runner of this run left behind is used, and deleted with the rest.
            self._jobs |= {job["metadata"]["name"] for job in self._list("/apis/batch/v1", "jobs")}
            while not all(pool.is_done for pool in pools) and time.monotonic() - started < self.wait_seconds:
                self._step(pools)
                time.sleep(POLL_SECONDS)
            for pool in pools:
                self.say(pool.describe(time.monotonic() - started))
        except ApiError as error:
            self.say(f"pre-pull: the cluster refuses ({error.message}); nodes pull the images with their first cell")
        finally:
            for name in list(self._jobs):
                self._delete(name)

    def _step(self, pools: Sequence[PrepulledPool]) -> None:
        """Look at the pods, and create the next one of each pool that may have another node."""
        query = {"labelSelector": select_prepull(self.run_id)}
        found = self.connection.read_items(self._path("/api/v1", "pods"), read_pulling_pod, query)
        for pool in pools:
            of_pool = [pod for pod in found if pod.device == pool.device]
            pods = [pod.status for pod in of_pool if not pod.is_deleted]
            pool.pods = [pod for pod in pods if pod.node]
            pool.errors |= {pod.status.uid: pod.error for pod in of_pool if pod.error}
            if not pool.is_complete:
                self._search(pool, {pod.job_name: pod for pod in pods})

    def _search(self, pool: PrepulledPool, pods: Mapping[str, PodStatus]) -> None:
        """Create the next Job of a pool if the newest has a node; end the search if it has none."""
        if pool.newest is None:
            self._create(pool)
            return
        pod = pods.get(pool.newest)
        if pod is not None and pod.node:
            self._create(pool)
        elif pod is not None and pod.unschedulable:
            self._end_search(pool)
        elif pod is None and time.monotonic() - pool.newest_since > NO_POD_SECONDS:
            self._end_search(pool)
            pool.reason = f"the Job {pool.newest} gets no pod: a quota, a webhook or a queue may hold it"

    def _end_search(self, pool: PrepulledPool) -> None:
        """Delete the Job that finds no node: an autoscaler is not to make one for it."""
        pool.is_complete = True
        if pool.newest is not None:
            self._delete(pool.newest)

    def _create(self, pool: PrepulledPool) -> None:
        name = f"benchmatrix-prepull-{pool.device}-{secrets.token_hex(TOKEN_BYTES)}"
        body = make_prepull_job(pool.cells, name, math.ceil(self.wait_seconds))
        self._jobs.add(name)
        self.connection.request("create", self._path("/apis/batch/v1", "jobs"), body=json.dumps(body).encode())
        pool.newest, pool.newest_since = name, time.monotonic()

    def _delete(self, name: str) -> None:
        """Delete a Job with its pod; what cannot be deleted ends by itself."""
        self._jobs.discard(name)
        with suppress(ApiError):
            path = f"{self._path('/apis/batch/v1', 'jobs')}/{name}"
            self.connection.request("delete", path, query={"propagationPolicy": "Background"})

    def _list(self, group: str, kind: str) -> list[dict[str, Any]]:
        return self.connection.list_items(self._path(group, kind), labelSelector=select_prepull(self.run_id))

    def _path(self, group: str, kind: str) -> str:
        return f"{group}/namespaces/{self.namespace}/{kind}"


@dataclass(frozen=True, kw_only=True)
class PullingPod:
    """What is read of a pod that pulls images."""

    status: PodStatus
    device: str | None
    """Whose pool it is for."""
    is_deleted: bool
    error: str
    """Why it gets no further; empty: nothing says that it does not."""


def read_pulling_pod(pod: ApiObject) -> PullingPod:
    """Return what is read of a pod."""
    return PullingPod(
        status=read_pod_status(pod),
        device=pod["metadata"].get("labels", {}).get(POOL_LABEL),
        is_deleted="deletionTimestamp" in pod["metadata"],
        error=find_error(pod),
    )


def find_error(pod: Manifest) -> str:
    """Return why a pod gets no further, in the kubelet's words, or an empty text."""
    status = pod.get("status", {})
    for container in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        waiting, ended = (container.get("state", {}).get(key, {}) for key in ("waiting", "terminated"))
        reason, message = waiting.get("reason", ""), waiting.get("message", "")
        is_permanent = reason in PASSING_IMAGE_REASONS and PERMANENT_IMAGE_ERROR.search(message)
        if is_permanent or reason in PERMANENT_IMAGE_REASONS | CONFIGURATION_REASONS:
            return f"{reason}: {message}".rstrip(": ")
        if ended.get("exitCode"):
            return f"{ended.get('reason', 'Error')}: {ended.get('message', '')}".rstrip(": ")
    return ""
