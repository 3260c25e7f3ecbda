"""Cells with tenants as real pods: containers of one pod meet, share a card or a node, and leave one record."""

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from gpu_nodes import GpuNode
from real_cluster import RealCluster, is_running_for

from bench.schema import Result
from stand_in_driver import CARD_UUID

RUN_ID = "tenants"
TENANTS = f"runs/{RUN_ID}/tenants/"
MATRIX = """
name: tenants
axes: {model: [conv6], phase: [infer]}
defaults:
  {framework: FRAMEWORK, device: DEVICE, batch_size: 4, num_warmup_steps: 2, num_steps: 5, min_seconds: SECONDS,
   tenants: 2, repeats: 1, timeout_seconds: 300}
"""


def make_matrix(framework: str, device: str, seconds: int) -> str:
    words = {"FRAMEWORK": framework, "DEVICE": device, "SECONDS": str(seconds)}
    matrix = MATRIX
    for name, value in words.items():
        matrix = matrix.replace(name, value)
    return matrix


def list_keys(cluster: RealCluster, prefix: str) -> list[str]:
    return list(cluster.store.list_keys(prefix))


def check_group(result: Result, pod: dict[str, Any], device: str | None) -> None:
    """Check that a Result is that of two tenants, the containers of this pod, on one machine with this card."""
    assert result.status == "ok", result.error
    assert result.tenancy is not None
    first, second = (tenant.place for tenant in result.tenancy.tenants)
    assert first is not None
    assert second is not None
    assert first.boot_id == second.boot_id
    assert (first.device, second.device) == (device, device)
    assert not set(first.pids) & set(second.pids)
    assert all(tenant.samples is not None for tenant in result.tenancy.tenants)
    assert (result.attempt, result.tenancy.group) == (pod["metadata"]["uid"],) * 2
    assert uuid.UUID(result.attempt)


def test_two_tenants_on_the_cores_of_a_node_are_measured_together_and_again_together_when_their_pod_is_deleted(
    real_cluster: RealCluster, provide_image: Callable[[str], str]
) -> None:
    real_cluster.set_up({"jax": provide_image("jax:cpu")})
    process = real_cluster.start_run(make_matrix("jax", "cpu", 20), RUN_ID)
    met = real_cluster.wait_for_pod(lambda pod: is_running_for(pod, "conv6", 0.0))
    real_cluster.wait_for_pod(lambda _: len(list_keys(real_cluster, TENANTS)) >= 3)  # call, ready, ready
    real_cluster.connection.request(
        "delete", f"/api/v1/namespaces/{real_cluster.namespace}/pods/{met['metadata']['name']}"
    )
    output, _ = process.communicate()

    print(output)
    assert process.returncode == 0
    (result,) = real_cluster.read_results(RUN_ID)
    (pod,) = [pod for pod in real_cluster.list_pods() if pod["status"]["phase"] == "Succeeded"]
    check_group(result, pod, None)
    assert pod["metadata"]["uid"] != met["metadata"]["uid"]
    assert [found["name"] for found in pod["spec"]["containers"]] == ["bench", "tenant-1"]
    assert pod["status"]["qosClass"] == "Guaranteed"
    assert list_keys(real_cluster, TENANTS) == []  # of the deleted pod's group, too
    (interrupted,) = list_keys(real_cluster, f"runs/{RUN_ID}/interrupted")  # tenant 0's alone
    assert met["metadata"]["uid"] in interrupted


@pytest.mark.parametrize("gpu_node", [("gke", 2), ("toolkit", 2)], indirect=True, ids=["gke", "toolkit"])
def test_the_tenants_of_a_group_are_placed_on_the_one_card_each_with_a_share_of_it(
    real_cluster: RealCluster, provide_image: Callable[[str], str], gpu_node: GpuNode
) -> None:
    """As far as CUDA, which the stand-in has not: PyTorch computes on the CPU, and the verdict says so."""
    real_cluster.set_up({"pytorch": provide_image("pytorch:cuda")}, gpu_profile=gpu_node.make_profile())
    gpu_node.set_card(computes_on_cpu=True)

    output, _ = real_cluster.start_run(make_matrix("pytorch", "gpu", 2), RUN_ID).communicate()

    print(output)
    (result,) = real_cluster.read_results(RUN_ID)
    (pod,) = real_cluster.list_pods()
    check_group(result, pod, CARD_UUID)
    limits = [found["resources"]["limits"]["nvidia.com/gpu"] for found in pod["spec"]["containers"]]
    assert limits == ["1", "1"]
    assert sorted(gpu_node.plugin.given) == [(f"{CARD_UUID}::0",), (f"{CARD_UUID}::1",)]
    assert result.validity is not None
    assert "wrong-device" in json.dumps(result.validity.model_dump(mode="json"))
