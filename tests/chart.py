"""Render the chart with Helm's own engine, and find what a test wants in its manifests."""

import copy
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import helm_python
import yaml

from bench.registry import FRAMEWORKS

CHART = Path(__file__).parents[1] / "charts" / "benchmatrix"
RELEASE, NAMESPACE = "sweeps", "team-a"
IMAGES = {name: {"cpu": f"registry.example/{name}:1"} for name in FRAMEWORKS}
NEEDED: dict[str, Any] = {
    "image": {"repository": "registry.example/control", "tag": "1"},
    "store": {"url": "s3://bucket/prefix"},
    "profile": {"extends": "kind", "images": IMAGES},
}
"""The least that an installation says."""
MATRIX = {
    "name": "mine",
    "axes": {"framework": ["jax", "pytorch"], "phase": ["train", "infer"], "model": ["conv6"]},
    "defaults": {
        "device": "cpu",
        "batch_size": 10_000_000,
        "repeats": {"max": 5, "until": "5%"},
        "seed": 4_000_000_000,
    },
}
AFFINITY: Any = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["control"]}]}]
        }
    }
}
SPREAD = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}]
OVERLAY: Any = {
    "metadata": {"annotations": {"sidecar.istio.io/inject": "false"}},
    "spec": {
        "runtimeClassName": "gvisor",
        "securityContext": {"fsGroup": 2000},
        "volumes": [{"name": "ca", "configMap": {"name": "private-ca"}}],
        "containers": [
            {
                "name": "runner",
                "env": [{"name": "SSL_CERT_FILE", "value": "/ca/ca.crt"}],
                "volumeMounts": [{"name": "ca", "mountPath": "/ca", "readOnly": True}],
            }
        ],
    },
}
"""Where the runner's pod is placed, and what else it has, in tests of all switches."""

Manifest = dict[str, Any]


def make_values(**changes: Any) -> dict[str, Any]:
    """Return values that can be installed; `schedule__suspend=True` sets `schedule.suspend`.

    The store for trying gets a Secret, which it needs.
    """
    values = copy.deepcopy(NEEDED)
    for path, value in changes.items():
        *keys, last = path.split("__")
        place = values
        for key in keys:
            place = place.setdefault(key, {})
        place[last] = value
    if values.get("trialStore", {}).get("enabled"):
        values["store"]["secret"] = values["store"].get("secret") or "keys"
    return values


def make_overlay(**fields: Any) -> Manifest:
    """Return an overlay of the runner's pod with these fields of its container."""
    return {"spec": {"containers": [{"name": "runner", **fields}]}}


def render_texts(values: dict[str, Any], *, name: str = RELEASE, namespace: str = NAMESPACE) -> dict[str, str]:
    """Return what each template gives, by its path in the chart."""
    with helm_python.Chart.load(CHART) as chart:
        return chart.render(values, name=name, namespace=namespace)


def render(values: dict[str, Any], **release: str) -> list[Manifest]:
    """Return all manifests, the pod of `helm test` among them."""
    texts = (text for path, text in render_texts(values, **release).items() if path.endswith(".yaml"))
    return list(parse(texts))


class StrictLoader(yaml.CSafeLoader):
    """Reads YAML, and refuses a mapping that has a key twice: Kubernetes would take one of the two."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key) for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.constructor.ConstructorError(problem=f"twice: {twice}", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


def parse(texts: Iterable[str]) -> Iterator[Manifest]:
    """Yield the manifests of YAML documents."""
    for text in texts:
        yield from filter(None, yaml.load_all(text, StrictLoader))


def find(manifests: Iterable[Manifest], kind: str, name_end: str = "") -> Manifest:
    (found,) = [item for item in manifests if item["kind"] == kind and item["metadata"]["name"].endswith(name_end)]
    return found


def find_pod(manifests: Iterable[Manifest]) -> Manifest:
    """Return the template of the runner's pod."""
    pod: Manifest = find(manifests, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]
    return pod


def make_job(cronjob: Manifest, name: str) -> Manifest:
    """Return a Job as `kubectl create job --from=cronjob/...` makes it of a CronJob that is in the cluster."""
    template, metadata = cronjob["spec"]["jobTemplate"], cronjob["metadata"]
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    labelled = {"name": name, "labels": template["metadata"]["labels"], "ownerReferences": [owner]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": labelled, "spec": template["spec"]}


def read_config(manifests: Iterable[Manifest], key: str) -> Manifest:
    """Return the document that the runner is given: its `profile` or its `matrix`."""
    document: Manifest = json.loads(find_pod(manifests)["metadata"]["annotations"][f"benchmatrix/{key}"])
    return document
