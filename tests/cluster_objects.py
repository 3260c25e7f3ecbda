"""Jobs and pods as an API server of Kubernetes 1.36 gave them, trimmed; what a kubelet wrote in them, fake_kubelet did.

Names say how they are: `job-complete`, `pod-preempted`, ...; see cluster_objects.json beside the runner's tests.
"""

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

from runner.kubernetes.objects import JobStatus, PodStatus, read_job_status, read_pod_status

_FILE = Path(__file__).parent / "unit" / "runner" / "cluster_objects.json"


def load_object(name: str) -> Any:
    """Return a copy of an object, to be changed at will."""
    return copy.deepcopy(_load()[name])


def list_objects() -> dict[str, Any]:
    """Return copies of all objects by their names."""
    return copy.deepcopy(_load())


def load_job(state: str) -> JobStatus:
    return read_job_status(load_object(f"job-{state}"))


def load_pod(state: str) -> PodStatus:
    return read_pod_status(load_object(f"pod-{state}"))


@cache
def _load() -> dict[str, Any]:
    objects: dict[str, Any] = json.loads(_FILE.read_text())
    return objects
