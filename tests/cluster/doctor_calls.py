"""Fixtures that call `benchmatrix doctor` for two CPU and two GPU kinds of cell."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clusters import await_ready
from runs import Site

from runner.commands import cluster
from runner.kubernetes.connection import Connection
from workspace import CallMain

Finding = dict[str, Any]
Examine = Callable[..., tuple[int, dict[str, Finding]]]
T4 = {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}
N2 = {"cloud.google.com/machine-family": "n2"}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
MATRIX = """
name: mine
axes: {framework: [pytorch, tensorflow], device: [cpu, gpu]}
defaults: {model: conv6, phase: train, batch_size: 4, num_steps: 2}
"""
PROFILE = """
extends: gke
images:
  pytorch: {cpu: r.example/p:1, gpu: r.example/p:1}
  tensorflow: {cpu: r.example/t:1, gpu: r.example/t:1}
"""


@pytest.fixture
def examine(
    call_main: CallMain, connection: Connection, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Examine:
    """Calls doctor for two CPU and two GPU kinds of cell; returns its exit code and the findings by their checks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cluster, "LOOK_SECONDS", 0.1)
    (tmp_path / "matrix.yaml").write_text(MATRIX)

    def call(*words: str, on: str = "current", profile: str = PROFILE) -> tuple[int, dict[str, Finding]]:
        (tmp_path / "mine.yaml").write_text(profile)
        options = ("--on", on, "--profile", "mine.yaml", "--namespace", namespace, "--json")
        code, out, err = call_main("doctor", "matrix.yaml", *options, *words)
        assert err == ""
        return code, {finding["check"]: finding for finding in json.loads(out)["findings"]}

    return call


@pytest.fixture
def add_nodes(site: Site) -> Callable[..., str]:
    """Adds a node of a name that is unique, and returns that once the node counts as ready."""
    kubelet = site.start_kubelet()

    def add(**options: Any) -> str:
        name = f"node-{uuid.uuid4().hex[:8]}"
        kubelet.add_node(name, **options)
        await_ready(site.connection, name)
        return name

    return add


def list_states(findings: dict[str, Finding]) -> dict[str, str]:
    return {check: finding["state"] for check, finding in findings.items()}
