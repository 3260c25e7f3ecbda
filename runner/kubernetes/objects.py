"""What the runner keeps of the API's Jobs, pods and nodes: a few hundred bytes each."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from kubernetes.utils.quantity import parse_quantity

from bench.schema import Node
from runner.kubernetes.names import CELL_LABEL, CONTAINER, POOL_LABEL, REPEAT_LABEL

# https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#node-affinity
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
MAX_WEIGHT = 100
"""The most that the API takes for a preference: it goes before what else the scheduler weighs."""


def list_required_terms(pod: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the alternatives of what a pod's spec requires of a node; a node must meet all of one. Empty: nothing."""
    terms: Sequence[Mapping[str, Any]] = (
        pod.get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED, {}).get("nodeSelectorTerms", ())
    )
    return terms


# Machine type, region and zone: https://kubernetes.io/docs/reference/labels-annotations-taints/
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
SPOT_VALUES: Mapping[str, frozenset[str]] = {
    # https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms
    "cloud.google.com/gke-spot": frozenset({"true"}),
    # https://cloud.google.com/kubernetes-engine/docs/how-to/preemptible-vms
    "cloud.google.com/gke-preemptible": frozenset({"true"}),
    # https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html
    "eks.amazonaws.com/capacityType": frozenset({"SPOT"}),
    # https://karpenter.sh/docs/concepts/scheduling/
    "karpenter.sh/capacity-type": frozenset({"spot"}),
    # https://learn.microsoft.com/azure/aks/spot-node-pool
    "kubernetes.azure.com/scalesetpriority": frozenset({"spot"}),
}
"""Labels that say whether a machine is spot, with the values that mean yes."""
MARKED_ONLY_WHEN_SPOT = ("cloud.google.com/gke-nodepool", "kubernetes.azure.com/cluster")
"""Labels of every node of GKE and AKS, which label spot machines only: without such a label a machine is none."""
GPU_LABELS = (
    # https://github.com/NVIDIA/k8s-device-plugin/blob/main/docs/gpu-feature-discovery/README.md
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/mig.strategy",
    "nvidia.com/cuda.driver-version.full",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-gpu-driver-version",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "eks.amazonaws.com/instance-gpu-name",
)


def describe_node(node: Mapping[str, Any]) -> Node:
    labels: Mapping[str, str] = node["metadata"].get("labels") or {}
    status: Mapping[str, Any] = node.get("status") or {}
    info: Mapping[str, str] = status.get("nodeInfo") or {}
    is_spot, capacity_label = find_capacity_type(labels)
    cpus = (status.get("capacity") or {}).get("cpu")
    return Node(
        instance_type=labels.get(INSTANCE_TYPE),
        region=labels.get(REGION),
        zone=labels.get(ZONE),
        is_spot=is_spot,
        capacity_label=capacity_label,
        kubelet_version=info.get("kubeletVersion") or None,
        container_runtime=info.get("containerRuntimeVersion") or None,
        os_image=info.get("osImage") or None,
        num_cpus=int(read_quantity(cpus)) or None if cpus else None,
        gpu_labels={name: labels[name] for name in GPU_LABELS if name in labels},
    )


def find_capacity_type(labels: Mapping[str, str]) -> tuple[bool | None, str | None]:
    """Return whether the machine is spot, None if no label says, and the label that says so, `KEY=VALUE`."""
    found = [name for name in SPOT_VALUES if name in labels]
    spot = [name for name in found if labels[name] in SPOT_VALUES[name]]
    for name in (*spot, *found):
        return bool(spot), f"{name}={labels[name]}"
    return (False if any(name in labels for name in MARKED_ONLY_WHEN_SPOT) else None), None


def read_quantity(text: str | float) -> Decimal:
    """Return a quantity of Kubernetes, such as `500m` or `4Gi`, in cores, bytes or pieces; ValueError if it is none."""
    amount: Decimal = parse_quantity(text)  # type: ignore[no-untyped-call]
    return amount


# What the runner keeps of Jobs and pods from the API's JSON: a few hundred bytes each.

OWN_CONTAINER = r"bench|tenant-[0-9]+"
"""The names of the containers that measure, as rendering.tenant_containers gives them."""


def list_others(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the containers of a pod that run beside those that measure.

    Among the init containers these are the ones that Kubernetes restarts: its sidecars
    (https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/). Others have ended by then.
    """
    beside = [found for found in spec.get("initContainers", ()) if found.get("restartPolicy") == "Always"]
    added = [found for found in spec.get("containers", ()) if not _is_own(found["name"])]
    return tuple(sorted(sys.intern(found["name"]) for found in (*beside, *added)))


def is_measured(statuses: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether all containers that measure have ended, by the statuses of a pod's containers, and others not."""
    states = {found["name"]: "terminated" in found.get("state", {}) for found in statuses}
    own = [has_ended for name, has_ended in states.items() if _is_own(name)]
    return bool(own) and all(own) and not all(states.values())


def _is_own(name: str) -> bool:
    return re.fullmatch(OWN_CONTAINER, name) is not None


NODE_DISRUPTION = "DisruptionTarget"
END_PHASES = ("Succeeded", "Failed")
STARTING = ("ContainerCreating", "PodInitializing")
"""The kubelet's reasons for containers whose turn has not come: pkg/kubelet/kubelet_pods.go."""
STATUS_UNKNOWN = "ContainerStatusUnknown"
"""The reason, beside a made-up exit code 137, of a container that a kubelet does not find when it ends the pod: mostly
one that was never begun (TerminatePod in pkg/kubelet/status/status_manager.go)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobStatus:
    """A Job of the run."""

    name: str
    uid: str
    cell_id: str
    number: int
    """Of its repeat; 0: no label names one, so it is no Job of the runner's making."""
    pool: str
    end: Literal["complete", "failed"] | None
    """None: not finished."""
    reason: str
    """Why it failed: `PodFailurePolicy`, `BackoffLimitExceeded`, `DeadlineExceeded`."""
    message: str
    is_suspended: bool
    num_active: int
    """Pods that are pending or running."""
    num_ready: int
    num_terminating: int
    """Pods that are being deleted: they are replaced only when they have ended."""
    num_failed_pods: int
    created_at: datetime
    ended_at: datetime | None
    required_node: str = ""
    """The name of the node that its pods must run on; empty: any."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PodStatus:
    """A pod of the run."""

    name: str
    uid: str
    job_name: str
    cell_id: str
    number: int
    pool: str
    phase: str
    node: str
    created_at: datetime
    unschedulable: str
    """The scheduler's message if it found no node, else empty."""
    disruption: str
    """Why its node took it down (preemption, eviction, a lost node), else empty."""
    waiting_reason: str
    """Why its container does not start: such as `ErrImagePull`."""
    waiting_message: str
    exit_code: int | None
    end_reason: str
    """`OOMKilled`, `Error`, ... of the container, or the pod's own: `Evicted`, `DeadlineExceeded`."""
    end_message: str
    """The log's tail, or why the pod was ended."""
    pod_reason: str
    """The kubelet's reason for the phase of the pod, such as `Evicted` or `OutOfcpu`; of a pod that ended by itself,
    empty."""
    pod_message: str
    """The kubelet's message to this reason."""
    deleted_at: datetime | None
    """When it was to be gone at the latest, if somebody deleted it, or a controller did: it stays until its containers
    have ended."""
    started_at: datetime | None
    ended_at: datetime | None
    has_run: bool
    """Its container runs, or did."""
    image_id: str
    """The image of its container by digest; empty: the runtime named none."""
    qos_class: str
    cpu_request: str
    """A quantity; empty: its container requests none."""
    other_containers: tuple[str, ...] = ()
    """The names of containers that run beside those that measure: sidecars that a policy of the cluster added."""
    is_held: bool = False
    """Those that measure have ended, and another container keeps the pod from ending."""

    @property
    def is_deleted(self) -> bool:
        return self.deleted_at is not None


def read_job_status(job: dict[str, Any]) -> JobStatus:
    metadata, status = job["metadata"], job.get("status", {})
    labels = metadata.get("labels", {})
    ends = (item for item in status.get("conditions", ()) if item["type"] in _ENDS and item["status"] == "True")
    found: dict[str, Any] = next(ends, {})
    spec = job["spec"].get("template", {}).get("spec", {})
    fields = (field for term in list_required_terms(spec) for field in term.get("matchFields", ()))
    # As `rendering.NodeWish` writes it, in every term.
    node = next((str(field["values"][0]) for field in fields if field["operator"] == "In"), "")
    return JobStatus(
        name=metadata["name"],
        uid=metadata["uid"],
        cell_id=labels.get(CELL_LABEL, ""),
        number=int(labels.get(REPEAT_LABEL, "0")),
        pool=labels.get(POOL_LABEL, ""),
        end=_ENDS[found["type"]] if found else None,
        reason=found.get("reason", ""),
        message=found.get("message", ""),
        is_suspended=bool(job["spec"].get("suspend")),
        num_active=status.get("active", 0),
        num_ready=status.get("ready", 0),
        num_terminating=status.get("terminating", 0),
        num_failed_pods=status.get("failed", 0),
        created_at=datetime.fromisoformat(metadata["creationTimestamp"]),
        ended_at=_read_time(status.get("completionTime") or found.get("lastTransitionTime")),
        required_node=sys.intern(node),
    )


def read_remaining_job(job: dict[str, Any]) -> JobStatus | None:
    """As `read_job_status`, but None of a Job that is being deleted."""
    return None if "deletionTimestamp" in job["metadata"] else read_job_status(job)


def read_pod_status(pod: dict[str, Any]) -> PodStatus:
    metadata, status = pod["metadata"], pod.get("status", {})
    labels = metadata.get("labels", {})
    conditions = {item["type"]: item for item in status.get("conditions", ())}
    scheduled, disrupted = conditions.get("PodScheduled", {}), conditions.get(NODE_DISRUPTION, {})
    is_unschedulable = scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable"
    is_disrupted = disrupted.get("status") == "True"
    disruption = f"{disrupted.get('reason', NODE_DISRUPTION)}: {disrupted.get('message', '')}".rstrip(": ")
    statuses = status.get("containerStatuses", ())
    container = _find_named(statuses)
    state, requests = container.get("state", {}), _find_named(pod["spec"].get("containers", ())).get("resources", {})
    waiting, terminated = _find_waiting(statuses), state.get("terminated", {})
    is_known = terminated.get("reason") != STATUS_UNKNOWN
    return PodStatus(
        name=metadata["name"],
        uid=metadata["uid"],
        job_name=labels.get("batch.kubernetes.io/job-name", ""),
        cell_id=labels.get(CELL_LABEL, ""),
        number=int(labels.get(REPEAT_LABEL, "0")),
        pool=labels.get(POOL_LABEL, ""),
        phase=status.get("phase", ""),
        node=pod["spec"].get("nodeName", ""),
        created_at=datetime.fromisoformat(metadata["creationTimestamp"]),
        unschedulable=scheduled.get("message", "") or "Unschedulable" if is_unschedulable else "",
        disruption=disruption if is_disrupted else "",
        waiting_reason=waiting.get("reason", ""),
        waiting_message=waiting.get("message", ""),
        exit_code=terminated.get("exitCode") if is_known else None,
        end_reason=status.get("reason", "") or terminated.get("reason", ""),
        end_message=terminated.get("message", "") or status.get("message", ""),
        pod_reason=status.get("reason", ""),
        pod_message=status.get("message", ""),
        deleted_at=_read_time(metadata.get("deletionTimestamp")),
        started_at=_read_time(terminated.get("startedAt") or status.get("startTime")),
        ended_at=_read_time(terminated.get("finishedAt")),
        has_run="running" in state or ("terminated" in state and is_known),
        image_id=container.get("imageID", ""),
        qos_class=status.get("qosClass", ""),
        cpu_request=requests.get("requests", {}).get("cpu", ""),
        other_containers=list_others(pod["spec"]),
        is_held=status.get("phase") == "Running" and is_measured(statuses),
    )


_ENDS: dict[str, Literal["complete", "failed"]] = {"Complete": "complete", "Failed": "failed"}


def _find_named(containers: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the entry of the container that measures, or leads the other tenants; empty if there is none."""
    return next((found for found in containers if found["name"] == CONTAINER), {})


def _find_waiting(containers: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return why a container waits: the one that measures, else any tenant, without which none starts."""
    found: dict[str, dict[str, Any]] = {item["name"]: item.get("state", {}).get("waiting", {}) for item in containers}
    own = found.get(CONTAINER, {})
    if own and own.get("reason") not in STARTING:
        return own
    return next((waiting for waiting in found.values() if waiting.get("reason", "") not in ("", *STARTING)), own)


def _read_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
