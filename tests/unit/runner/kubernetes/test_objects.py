"""What is read of Jobs, pods and nodes."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from bench.schema import Node
from cluster_objects import load_job, load_object, load_pod
from factories import make_cell
from job_manifests import load, make_key, make_renderer, plan
from runner.kubernetes.objects import describe_node, find_capacity_type, read_job_status, read_pod_status
from runner.kubernetes.rendering import NodeWish

CELL_ID = "conv6-pytorch-cpu-train-fp32-eager-b64-7890d9fa"


@pytest.mark.parametrize(
    ("state", "end", "reason"),
    [
        ("running", None, ""),
        ("suspended", None, ""),
        ("complete", "complete", "CompletionsReached"),
        ("oom", "failed", "PodFailurePolicy"),
        ("deadline", "failed", "DeadlineExceeded"),
        ("backoff", "failed", "BackoffLimitExceeded"),
    ],
)
def test_a_job_says_whether_and_how_it_ended(state: str, end: str | None, reason: str) -> None:
    job = load_job(state)
    assert (job.end, job.reason, job.is_suspended) == (end, reason, state == "suspended")
    assert (job.cell_id, job.number, job.pool) == (CELL_ID, 1, "cpu")
    assert (job.num_active, job.num_ready) == ((1, 1) if state == "running" else (0, 0))


def test_a_job_ends_when_its_condition_changed_and_not_while_it_is_about_to_fail() -> None:
    assert load_job("deadline").ended_at == datetime(2026, 11, 21, 8, 57, 5, tzinfo=UTC)
    job = load_object("job-oom")
    job["status"]["conditions"] = [item for item in job["status"]["conditions"] if item["type"] == "FailureTarget"]
    assert read_job_status(job).end is None


def test_objects_of_which_nothing_is_known_yet_are_read() -> None:
    job, pod = load_object("job-running"), load_object("pod-unschedulable")
    del job["status"], job["metadata"]["labels"], pod["status"]
    seen = read_job_status(job)
    assert (seen.end, seen.num_ready, seen.cell_id) == (None, 0, "")
    made = read_pod_status(pod)
    assert (made.phase, made.exit_code, made.started_at, made.unschedulable) == ("", None, None, "")


def test_a_job_says_which_node_its_pods_have_to_run_on() -> None:
    profile, cell = load("gke"), make_cell()
    job = load_object("job-running")
    for wish in (NodeWish(), NodeWish(node="node-1")):
        rendered = make_renderer(profile).render(plan(cell), make_key(cell), wish)
        job["spec"] = json.loads(rendered)["spec"]
        assert read_job_status(job).required_node == wish.node


NO_CPU = "Pod was rejected: Node didn't have enough resource: cpu, requested: 1000, used: 3100, capacity: 4000"


@pytest.mark.parametrize(
    ("state", "fields"),
    [
        ("oom", {"exit_code": 137, "end_reason": "OOMKilled", "end_message": "out of memory", "disruption": ""}),
        ("user", {"exit_code": 2, "end_reason": "Error", "end_message": "Traceback\nerror: BENCH_STORE: not set"}),
        ("running", {"exit_code": None, "end_reason": "", "end_message": "", "unschedulable": "", "disruption": ""}),
        ("rejected", {"exit_code": None, "end_reason": "OutOfcpu", "end_message": NO_CPU, "disruption": ""}),
        ("evicted", {"disruption": "EvictionByEvictionAPI: Eviction API: evicting"}),
        ("image", {"unschedulable": ""}),
        (
            "secret",
            {"waiting_reason": "CreateContainerConfigError", "waiting_message": 'secret "benchmatrix-store" not found'},
        ),
    ],
)
def test_the_state_of_a_pod_is_its_containers_or_its_own(state: str, fields: dict[str, Any]) -> None:
    pod = load_pod(state)
    assert {name: getattr(pod, name) for name in fields} == fields


def test_a_pod_without_a_node_has_the_schedulers_words_unless_a_gate_holds_it_back() -> None:
    pod = load_pod("unschedulable")
    assert pod.unschedulable.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert (pod.phase, pod.node) == ("Pending", "")
    gated = load_object("pod-unschedulable")
    gated["status"]["conditions"][0]["reason"] = "SchedulingGated"
    assert read_pod_status(gated).unschedulable == ""


def test_a_container_that_a_mesh_added_is_not_the_cells() -> None:
    pod = load_object("pod-oom")
    sidecar = {"name": "istio-proxy", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    pod["status"]["containerStatuses"].insert(0, sidecar)
    assert read_pod_status(pod).exit_code == 137


def make_waiting(name: str, reason: str) -> dict[str, Any]:
    return {"name": name, "state": {"waiting": {"reason": reason, "message": f"of {name}"}}}


@pytest.mark.parametrize(
    ("leader", "tenant", "expected"),
    [
        ("ContainerCreating", "CreateContainerError", "of tenant-1"),
        ("CreateContainerError", "ImagePullBackOff", "of bench"),
        ("ContainerCreating", "ContainerCreating", "of bench"),
        (None, "CreateContainerError", "of tenant-1"),
        (None, "PodInitializing", ""),
    ],
)
def test_a_pod_waits_for_any_of_its_tenants(leader: str | None, tenant: str, expected: str) -> None:
    pod = load_object("pod-unschedulable")
    first = {"name": "bench", "state": {"running": {}}} if leader is None else make_waiting("bench", leader)
    pod["status"]["containerStatuses"] = [first, make_waiting("tenant-1", tenant)]
    assert read_pod_status(pod).waiting_message == expected


def test_a_pod_of_tenants_ended_as_its_leader_did() -> None:
    pod = load_object("pod-unschedulable")
    codes = {"tenant-1": 137, "bench": 1, "tenant-2": 0}
    pod["status"]["containerStatuses"] = [
        {"name": name, "state": {"terminated": {"exitCode": code, "reason": "Error"}}} for name, code in codes.items()
    ]
    assert read_pod_status(pod).exit_code == 1


GKE = {"cloud.google.com/gke-nodepool": "t4"}
AKS = {"kubernetes.azure.com/cluster": "mc"}
EKS, KARPENTER = "eks.amazonaws.com/capacityType", "karpenter.sh/capacity-type"
SCALE_SET = "kubernetes.azure.com/scalesetpriority"


@pytest.mark.parametrize(
    ("labels", "is_spot", "label"),
    [
        ({}, None, None),
        ({"kubernetes.io/hostname": "a"}, None, None),
        (GKE, False, None),
        (GKE | {"cloud.google.com/gke-spot": "true"}, True, "cloud.google.com/gke-spot=true"),
        (GKE | {"cloud.google.com/gke-preemptible": "true"}, True, "cloud.google.com/gke-preemptible=true"),
        ({EKS: "SPOT"}, True, f"{EKS}=SPOT"),
        ({EKS: "ON_DEMAND"}, False, f"{EKS}=ON_DEMAND"),
        ({KARPENTER: "spot"}, True, f"{KARPENTER}=spot"),
        ({KARPENTER: "reserved"}, False, f"{KARPENTER}=reserved"),
        (AKS, False, None),
        (AKS | {SCALE_SET: "spot"}, True, f"{SCALE_SET}=spot"),
        ({EKS: "ON_DEMAND", KARPENTER: "spot"}, True, f"{KARPENTER}=spot"),
    ],
)
def test_labels_say_whether_a_machine_is_spot(labels: dict[str, str], is_spot: bool | None, label: str | None) -> None:
    assert find_capacity_type(labels) == (is_spot, label)


def make_object(labels: dict[str, str], **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "node-1", "labels": labels}, "status": status}


def test_a_node_says_its_machine_its_place_and_its_gpus() -> None:
    labels = GKE | {
        "node.kubernetes.io/instance-type": "n1-standard-8",
        "topology.kubernetes.io/region": "europe-west4",
        "topology.kubernetes.io/zone": "europe-west4-a",
        "cloud.google.com/gke-accelerator": "nvidia-tesla-t4",
        "team": "a",
    }
    info = {"kubeletVersion": "v1.36.2-gke.100", "containerRuntimeVersion": "containerd://2.1.4", "osImage": "COS"}
    assert describe_node(make_object(labels, capacity={"cpu": "8", "memory": "30Gi"}, nodeInfo=info)) == Node(
        instance_type="n1-standard-8",
        region="europe-west4",
        zone="europe-west4-a",
        is_spot=False,
        kubelet_version="v1.36.2-gke.100",
        container_runtime="containerd://2.1.4",
        os_image="COS",
        num_cpus=8,
        gpu_labels={"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"},
    )


def test_what_a_node_does_not_say_is_unknown() -> None:
    assert describe_node({"metadata": {"name": "node-1"}}) == Node()
    assert describe_node(make_object({}, nodeInfo={"kubeletVersion": ""}, capacity={})) == Node()
