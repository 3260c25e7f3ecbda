"""Make the Jobs that have a node pull the images of a run, from the Jobs of its cells.

Their pods go where the cells go, because their template is made from that of a cell: whatever the profile says of
nodes, taints, identity and registries holds for them too.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from runner.kubernetes.node_affinity import REQUIRED
from runner.kubernetes.rendering.job_name import OWN_LABELS, POOL_LABEL, RUN_LABEL
from runner.kubernetes.rendering.manifest_check import check_manifest

PREPULL = "app.kubernetes.io/name=benchmatrix,app.kubernetes.io/component=prepull"
HOLDER = "hold"
"""The container that keeps the pod on its node, so that the next pod goes to another one."""
LIFE_SECONDS = 60
"""How much longer than a runner waits for it a Job lives, should the runner be gone."""
TTL_SECONDS = 60
"""How long the cluster keeps a Job that ended by itself."""
# Enough for `true` and `sleep` with a container runtime's own start; GKE Autopilot's smallest pod has 50m and 52Mi:
# https://cloud.google.com/kubernetes-engine/docs/concepts/autopilot-resource-requests#min-max-requests
_RESOURCES = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "50m", "memory": "64Mi"}}
# The NVIDIA runtime gives a container no GPU then, whatever the image asks for:
# https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
_NO_GPU = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
# What a cell has and a pod that measures nothing needs not.
_DROPPED = frozenset(
    {"activeDeadlineSeconds", "priorityClassName", "resourceClaims", "topologySpreadConstraints", "volumes"}
)

Manifest = dict[str, Any]


def select_prepull(run_id: str) -> str:
    """Return the label selector that finds the Jobs and pods which pull a run's images before its first cell."""
    return f"{PREPULL},{RUN_LABEL}={run_id}"


def make_prepull_job(cells: Sequence[Mapping[str, Any]], name: str, wait_seconds: int) -> Manifest:
    """Return a Job whose pod has one node pull the images of these Jobs of cells, which are of one pool.

    The pod goes to no node with a cell, nor with another such pod of the run, and keeps cells off as long as it is
    there. UserError if the profile makes a Job of it that Kubernetes would not take.
    """
    cell = cells[0]
    metadata, template = cell["metadata"], cell["spec"]["template"]
    labels = _make_labels(metadata["labels"])
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": metadata["namespace"], "labels": labels}
        | {key: metadata[key] for key in ("ownerReferences",) if key in metadata},
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 0,
            "activeDeadlineSeconds": wait_seconds + LIFE_SECONDS,
            "ttlSecondsAfterFinished": TTL_SECONDS,
            "template": {
                "metadata": {"labels": labels, "annotations": _make_annotations(template["metadata"], wait_seconds)},
                "spec": _make_pod(template["spec"], labels, list_images(cells), wait_seconds),
            },
        },
    }
    check_manifest(job, source="the Job that pulls images")
    return job


def list_images(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the images of Jobs, each once."""
    return list(dict.fromkeys(_find_container(cell["spec"]["template"]["spec"])["image"] for cell in cells))


def _make_labels(of_cell: Mapping[str, str]) -> dict[str, str]:
    """Return the labels: those that the profile gives to cells, and the tool's."""
    others = {key: value for key, value in of_cell.items() if key not in OWN_LABELS}
    shared = ("app.kubernetes.io/name", "app.kubernetes.io/managed-by", RUN_LABEL, POOL_LABEL)
    own = {key: of_cell[key] for key in shared}
    return others | own | {"app.kubernetes.io/component": "prepull"}


def _make_annotations(of_cell: Mapping[str, Any], wait_seconds: int) -> dict[str, str]:
    """Return the annotations: a pod that finds no node is no reason for the cluster autoscaler to make one.

    https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
    """
    delay = {"cluster-autoscaler.kubernetes.io/pod-scale-up-delay": f"{wait_seconds + LIFE_SECONDS}s"}
    return {**of_cell.get("annotations", {}), **delay}


def _make_pod(cell: Mapping[str, Any], labels: dict[str, str], images: list[str], wait_seconds: int) -> Manifest:
    pod = {key: copy.deepcopy(value) for key, value in cell.items() if key not in _DROPPED}
    container = _find_container(cell)

    def make_container(name: str, image: str, *command: str) -> Manifest:
        kept = {key: container[key] for key in ("imagePullPolicy", "securityContext", "terminationMessagePolicy")}
        return kept | {
            "name": name,
            "image": image,
            "command": list(command),
            "env": [_NO_GPU],
            "resources": _RESOURCES,
        }

    return pod | {
        "terminationGracePeriodSeconds": 1,  # `sleep` ignores SIGTERM, and cells wait until the pod is gone
        "affinity": {
            **{key: value for key, value in cell.get("affinity", {}).items() if key == "nodeAffinity"},
            "podAntiAffinity": {REQUIRED: _make_anti_affinity(cell, labels)},
        },
        "initContainers": [make_container(f"image-{number}", image, "true") for number, image in enumerate(images)],
        "containers": [make_container(HOLDER, images[-1], "sleep", str(wait_seconds + LIFE_SECONDS))],
    }


def _make_anti_affinity(cell: Mapping[str, Any], labels: Mapping[str, str]) -> list[Manifest]:
    """Return what a pod keeps away from: its own kind, and measured cells if these keep away from each other.

    That the pod's term would keep cells off as well is not enough: a scheduler that has refused a cell for the term of
    another pod may look at it again only after five minutes (https://github.com/kubernetes/kubernetes/issues/134393).
    Therefore cells have a term against these pods, in manifests/job.yaml.j2.
    """
    by_host = {"topologyKey": "kubernetes.io/hostname"}
    shared = ("app.kubernetes.io/name", "app.kubernetes.io/component", RUN_LABEL, POOL_LABEL)
    terms = [by_host | {"labelSelector": {"matchLabels": {key: labels[key] for key in shared}}}]
    if "podAntiAffinity" in cell.get("affinity", {}):
        cells = {"app.kubernetes.io/name": "benchmatrix", "app.kubernetes.io/component": "cell"}
        terms.append(by_host | {"namespaceSelector": {}, "labelSelector": {"matchLabels": cells}})
    return terms


def _find_container(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the container that measures."""
    found: Mapping[str, Any] = next(item for item in pod["containers"] if item["name"] == "bench")
    return found
