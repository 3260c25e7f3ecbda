"""GPU cells as real pods on a node whose device plugin and driver are stand-ins: placed, seen, and as far as CUDA."""

from collections.abc import Callable
from typing import Any

import pytest
from gpu_nodes import GpuNode
from real_cluster import RealCluster, read_exit_code

from bench.errors import EXIT_NODE_FAULT
from bench.schema import Result
from stand_in_driver import CARD_NAME, CARD_UUID

DEFAULTS = """
defaults:
  {framework: pytorch, device: gpu, num_warmup_steps: 2, num_steps: 5, min_seconds: 1, pipelined_seconds: 0,
   num_profiled_steps: 0, repeats: 1, timeout_seconds: 150}
"""
MATRIX = f"name: gpus\naxes: {{model: [conv6], phase: [train, infer], batch_size: [4, 8]}}{DEFAULTS}"
ONE_CELL = f"name: gpu\naxes: {{model: [conv6], phase: [train], batch_size: [4]}}{DEFAULTS}"
REFUSAL = "invalid request for sharing GPU (time-sharing), at most 1 nvidia.com/gpu can be requested on GPU nodes"
"""GKE's plugin's own (pkg/gpu/nvidia/gpusharing/gpusharing.go in GoogleCloudPlatform/container-engine-accelerators)."""


@pytest.fixture
def gpu_cluster(real_cluster: RealCluster, provide_image: Callable[[str], str], gpu_node: GpuNode) -> RealCluster:
    """A namespace with a profile for the node's card."""
    real_cluster.set_up({"pytorch": provide_image("pytorch:cuda")}, gpu_profile=gpu_node.make_profile())
    return real_cluster


def measure_after(gpu_cluster: RealCluster, gpu_node: GpuNode, **card: Any) -> tuple[dict[str, Any], list[Result], str]:
    """Run one cell on a node with this card, which is mended once a pod has ended there.

    Returns that pod, the records, and what the run printed.
    """
    gpu_node.set_card(**card)
    process = gpu_cluster.start_run(ONE_CELL, "mended")
    pod = gpu_cluster.wait_for_pod(lambda pod: pod["status"].get("phase") == "Failed")
    gpu_node.set_card(computes_on_cpu=True)
    output, _ = process.communicate()
    print(output)
    assert 0 == process.returncode
    return pod, gpu_cluster.read_results("mended"), output


@pytest.mark.parametrize("gpu_node", ["gke", "toolkit"], indirect=True)
def test_a_small_matrix_runs_to_its_records_which_name_the_card_and_say_that_it_did_not_compute(
    gpu_cluster: RealCluster, gpu_node: GpuNode
) -> None:
    gpu_node.set_card(computes_on_cpu=True)

    process = gpu_cluster.start_run(MATRIX, "matrix")
    output, _ = process.communicate()

    print(output)
    results = gpu_cluster.read_results("matrix")
    assert (0, 4, 4) == (process.returncode, len(results), len({result.cell_id for result in results}))
    for result in results:
        assert result.status == "ok", result.error
        assert result.environment is not None
        (gpu,), (use,) = result.environment.gpus, result.gpu_use
        assert (CARD_NAME, CARD_UUID, "580.95.05") == (gpu.name, gpu.uuid, gpu.driver_version)
        assert (15360 * 2**20, 70.0) == (gpu.memory_total_bytes, gpu.power_limit_watts)
        assert (CARD_UUID, 1590, 585) == (use.uuid, use.max_sm_clock_mhz, use.application_clock_mhz)
        assert use.sm_clock_mhz is not None
        assert {300} == set(use.sm_clock_mhz)
        assert result.validity is not None
        assert "wrong-device" in [reason.verdict for reason in result.validity.reasons]
    assert "4 of 4 repeats ok" in (gpu_cluster.folder / "reports" / "matrix" / "report.html").read_text()


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        ({"card": "lost"}, "device: no NVIDIA GPU can be seen (NVMLError_GpuIsLost: GPU is lost)"),
        ({"cuda": 0}, "sees 0 GPUs, the cell asks for 1"),  # CUDA starts, and PyTorch finds it of no use
    ],
    ids=lambda value: "-".join(f"{name}-{state}" for name, state in value.items()) if isinstance(value, dict) else "",
)
def test_a_node_at_fault_is_told_in_one_line_and_its_cell_is_measured_again(
    gpu_cluster: RealCluster, gpu_node: GpuNode, card: dict[str, Any], expected: str
) -> None:
    pod, (result,), output = measure_after(gpu_cluster, gpu_node, **card)

    assert EXIT_NODE_FAULT == read_exit_code(pod)
    log: str = pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"]
    line = log.splitlines()[-1]
    assert line.startswith("error: fault of this machine, not of the cell: ")
    assert expected in line
    assert f"node {pod['spec']['nodeName']} is at fault, the cell is measured again: " in output
    assert expected in output
    assert result.status == "ok"
    assert pod["metadata"]["uid"] != result.attempt


def test_a_pod_that_the_device_plugin_refuses_is_no_end_of_its_cell(
    gpu_cluster: RealCluster, gpu_node: GpuNode
) -> None:
    pod, (result,), _ = measure_after(gpu_cluster, gpu_node, refusal=REFUSAL)

    assert "UnexpectedAdmissionError" == pod["status"]["reason"]
    assert REFUSAL in pod["status"]["message"]
    assert result.status == "ok"


def test_a_slice_is_measured_though_the_memory_of_its_gpu_may_not_be_asked_for(
    gpu_cluster: RealCluster, gpu_node: GpuNode
) -> None:
    """As in a container with a MIG device: https://github.com/NVIDIA/nvidia-container-toolkit/issues/842."""
    gpu_node.set_card("mig-slice", computes_on_cpu=True)

    output, _ = gpu_cluster.start_run(ONE_CELL, "slice").communicate()

    print(output)
    (result,) = gpu_cluster.read_results("slice")
    assert result.status == "ok", result.error
    assert result.environment is not None
    (gpu,) = result.environment.gpus
    assert ("1g.5gb", 4864 * 2**20) == (gpu.mig_profile, gpu.memory_total_bytes)
