"""Sets up a namespace of a cluster with real pods, starts runs there, and observes their pods."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.schema import Result
from bench.store import Store, results_prefix
from runner.kubernetes.connection import ApiError, Connection
from runner.kubernetes.login import CURRENT
from s3_server import S3Server

PROGRAM = (sys.executable, "-m", "runner.cli")
ROOT = Path(__file__).parents[2]
GUARD_SECONDS = 900.0
"""A run, or a condition, that takes longer has failed, on a machine that is busy with other work too."""
NOT_FOUND = 404
STORE_SECRET = "benchmatrix-store"


def wait_for(condition: Callable[[], Any], what: str, seconds: float = GUARD_SECONDS) -> Any:
    """Return the first true value of `condition`; raise AssertionError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"{what} did not come within {seconds:.0f} s"
        time.sleep(0.2)
    return answer


def delete_namespace(connection: Connection, name: str) -> None:
    """Delete a namespace, if it exists, and wait until it is gone."""

    def is_gone() -> bool:
        return not connection.list_items("/api/v1/namespaces", fieldSelector=f"metadata.name={name}")

    try:
        connection.request("delete", f"/api/v1/namespaces/{name}")
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise
    wait_for(is_gone, f"the end of namespace {name}")


@dataclass(frozen=True, kw_only=True)
class RealCluster:
    """A namespace of a cluster whose nodes run pods, and a real S3 server that they reach."""

    connection: Connection
    namespace: str
    s3: S3Server
    folder: Path
    """Where the command line runs."""

    @property
    def store_url(self) -> str:
        return f"s3://{self.s3.bucket}/{self.namespace}"

    @property
    def store(self) -> Store:
        return Store.open(self.store_url)

    def set_up(self, images: Mapping[str, str], *, gpu_profile: Mapping[str, Any] | None = None) -> None:
        """Write a profile with these images (by framework), and apply what a run needs, with the store's keys.

        `gpu_profile`: what it says besides, for images and cells of GPUs; None: for those of CPUs, as in kind.
        """
        device = "cpu" if gpu_profile is None else "gpu"
        base = gpu_profile or {"extends": "kind"}
        environment = {"AWS_ENDPOINT_URL": self.s3.endpoint_url, "AWS_DEFAULT_REGION": "us-east-1"}
        profile = {
            **base,
            "namespace": self.namespace,
            "store_secret": STORE_SECRET,
            "images": {framework: {device: image} for framework, image in images.items()},
            "environment": environment | base.get("environment", {}),
        }
        (self.folder / "profile.yaml").write_text(json.dumps(profile))
        self._start("setup", "--on", CURRENT, "--profile", "profile.yaml", "--no-s3").communicate()
        self.make_store_secret()

    def make_store_secret(self) -> None:
        """Create the Secret with the store's keys that profiles for kind name."""
        keys = {"AWS_ACCESS_KEY_ID": self.s3.access_key, "AWS_SECRET_ACCESS_KEY": self.s3.secret_key}
        self.make_secret(STORE_SECRET, keys)

    def make_secret(self, name: str, values: Mapping[str, str]) -> None:
        """Create a Secret in the namespace."""
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": dict(values)}
        path = f"/api/v1/namespaces/{self.namespace}/secrets"
        self.connection.request("create", path, body=json.dumps(secret).encode())

    def start_run(self, matrix: str, run_id: str) -> "subprocess.Popen[str]":
        """Start `benchmatrix run` with a matrix given as YAML, and kill it if it still runs after GUARD_SECONDS."""
        (self.folder / "matrix.yaml").write_text(matrix)
        place = ("--on", CURRENT, "--profile", "profile.yaml", "--store", self.store_url)
        process = self._start("run", "matrix.yaml", *place, "--run-id", run_id)
        guard = threading.Timer(GUARD_SECONDS, process.kill)
        guard.daemon = True
        guard.start()
        return process

    def list_pods(self) -> list[dict[str, Any]]:
        return self.connection.list_items(f"/api/v1/namespaces/{self.namespace}/pods")

    def wait_for_pod(self, is_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the first pod that is wanted, as soon as there is one."""
        found: dict[str, Any] = wait_for(lambda: next(filter(is_wanted, self.list_pods()), None), "a pod")
        return found

    def read_results(self, run_id: str) -> list[Result]:
        """Return all terminal records of a run."""
        store = self.store
        keys = list(store.list_keys(results_prefix(run_id)))
        return [Result.model_validate_json(data) for _, data in store.get_listed(keys) if isinstance(data, bytes)]

    def _start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*PROGRAM, *words],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def is_running_for(pod: dict[str, Any], words: str, seconds: float) -> bool:
    """Return whether the name of `pod` contains `words` and its container has been running for more than `seconds`."""
    state = (pod["status"].get("containerStatuses") or [{}])[0].get("state", {})
    if words not in pod["metadata"]["name"] or "running" not in state:
        return False
    started = time.strptime(state["running"]["startedAt"], "%Y-%m-%dT%H:%M:%SZ")
    return time.time() - (time.mktime(started) - time.timezone) > seconds


def read_exit_code(pod: dict[str, Any]) -> int | None:
    """Return the exit code of the pod's container; None while it runs."""
    state = (pod["status"].get("containerStatuses") or [{}])[0].get("state", {})
    code: int | None = state.get("terminated", {}).get("exitCode")
    return code
