"""Queues on a real Kueue: those of the docs, those that `setup` and the chart make, and what doctor says of them."""

from collections.abc import Callable
from typing import Any

import helm_python
import pytest
import yaml
from doctor_calls import Examine
from machines import make_gke
from queues import Queues
from runs import Site, make_profile

from chart import CHART, make_values
from control_plane import ControlPlane
from factories import make_cell
from runner.kubernetes.rendering import MANIFESTS

ROOMY = {"cpu": "100", "memory": "1Ti", "ephemeral-storage": "10Ti", "nvidia.com/gpu": "8"}


@pytest.fixture
def documented(queues: Queues, namespace: str) -> list[dict[str, Any]]:
    """The queues of the docs, for the namespace of the test."""
    manifests = list(yaml.safe_load_all((MANIFESTS / "kueue.yaml").read_text()))
    assert [manifest["kind"] for manifest in manifests] == [
        "ResourceFlavor", "ResourceFlavor", "ClusterQueue", "LocalQueue"
    ]  # fmt: skip
    if manifests[0]["apiVersion"] != queues.api_version:
        pytest.skip(f"the docs' queues are of {manifests[0]['apiVersion']}, this Kueue serves {queues.api_version}")
    text = yaml.safe_dump_all(manifests).replace("bench-team-a", namespace)
    return list(yaml.safe_load_all(text))


def test_the_documented_queue_admits_cells_of_both_pools(
    site: Site, queues: Queues, documented: list[dict[str, Any]], examine: Examine
) -> None:
    for manifest in documented:
        queues.apply(manifest)
    queues.await_condition("nightly", "True")
    kubelet = site.start_kubelet()
    for number, machine in enumerate((make_gke("cpu", None), make_gke("gpu", "nvidia-tesla-t4"))):
        taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}] if machine.gpus else []
        capacity = {"cpu": "8", "memory": "32Gi", **machine.gpus}
        kubelet.add_node(f"{site.namespace}-{number}", labels=machine.labels, taints=taints, capacity=capacity)

    _, findings = examine("--queue", "nightly")
    cells = [make_cell(device=device) for device in ("cpu", "gpu")]
    setup = site.make_setup(cells, profile=make_profile(site.namespace, "gke"), queue="nightly")
    setup.measure()

    assert findings["queue"]["state"] == "ok"
    assert [result.status for result in setup.observed.results] == ["ok", "ok"]


def test_doctor_finds_what_keeps_cells_in_the_queue(
    queues: Queues, examine: Examine, control_plane: ControlPlane, namespace: str
) -> None:
    held = queues.add("held", {queues.add_flavor(): ROOMY}, stopPolicy="Hold")
    queues.await_condition("held", "False")

    _, findings = examine("--queue", "held")
    assert findings["queue"]["state"] == "failed"
    assert findings["queue"]["message"].startswith(f"LocalQueue held of ClusterQueue {held}: ")

    _, findings = examine("--queue", "missing")
    assert findings["queue"]["message"] == f"namespace {namespace} has no LocalQueue missing"

    _, findings = examine("--queue", "held", on=f"{control_plane.context}-user")
    assert findings["queue"]["state"] == "warning"
    assert findings["queue"]["message"].startswith("not checked: you lack the permission: localqueues")
    assert findings["permissions to explain what waits"]["state"] == "warning"


def test_the_chart_makes_queues_of_the_version_that_is_served(
    queues: Queues, helm: Callable[[str], helm_python.Config], namespace: str
) -> None:
    flavor = {"name": f"{namespace}-cpu", "quotas": {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "64Gi"}}
    values = make_values(
        kueue__localQueue="sweeps", kueue__clusterQueue=f"{namespace}-all", kueue__flavors=[flavor], kueue__cohort="all"
    )
    config = helm(namespace)
    config.install(CHART, "sweeps", values)

    queues.await_condition("sweeps", "True")

    config.uninstall("sweeps")
