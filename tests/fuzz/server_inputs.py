"""Strategies for what servers say: a kubeconfig and the cluster that it leads to, and an S3 server."""

from typing import Any

from cluster_objects import load_object
from fuzz.inputs import Contents
from fuzz.markers import SECRET
from fuzz.mutations import draw_changed, draw_contents, draw_garbled, dump_json, dump_yaml
from fuzz.servers import S3_TRUTH
from fuzz.workspaces import KUBECONFIG, RUN_A

USERS: list[dict[str, Any]] = [
    {"token": SECRET},
    {"username": "me", "password": SECRET},
    {"client-certificate-data": "eA==", "client-key-data": "eA=="},
    {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "plugin", "args": ["x"], "env": None}},
    {"auth-provider": {"name": "oidc", "config": {"id-token": SECRET, "refresh-token": SECRET}}},
    {"tokenFile": "nowhere"},
]
kubeconfigs: Contents = draw_contents(
    draw_changed(
        [KUBECONFIG, *(KUBECONFIG | {"users": [{"name": "me", "user": user}]} for user in USERS),
         KUBECONFIG | {"clusters": [{"name": "lab", "cluster": {"server": f"https://me:{SECRET}@127.0.0.1:1"}}]}]
    ),
    dump_yaml,
)  # fmt: skip


def _make_list(*items: Any) -> dict[str, Any]:
    return {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": list(items)}


def _own(name: str) -> Any:
    found = load_object(name)
    found["metadata"]["labels"]["benchmatrix/run-id"] = RUN_A
    return found


NODE = {
    "metadata": {
        "name": "node-1",
        "uid": "u",
        "labels": {"kubernetes.io/arch": "amd64", "kubernetes.io/hostname": "node-1"},
    },
    "spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]},
    "status": {
        "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "1"},
        "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "1"},
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-22T10:00:00Z"}],
        "nodeInfo": {"kubeletVersion": "v1.36.0", "operatingSystem": "linux", "architecture": "amd64"},
        "images": [{"names": ["a:1"], "sizeBytes": 7}],
    },
}
EVENT = {
    "metadata": {"name": "e", "uid": "e"},
    "reason": "FailedScheduling",
    "message": "0/1 nodes are available",
    "type": "Warning",
    "count": 3,
    "involvedObject": {"kind": "Pod", "name": "p"},
    "lastTimestamp": "2026-11-22T10:00:00Z",
}
CONDITION = {"type": "Active", "status": "True", "reason": "Ready", "message": "can admit"}
NOON = "2026-11-22T12:00:00Z"
ME = {"username": "me", "groups": ["g"]}
LIMIT = {"type": "Container", "max": {"cpu": "2"}}
CLUSTER: dict[str, Any] = {
    "version": {"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
    "namespaces": {"metadata": {"name": "lab", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
    "jobs": _make_list(*map(_own, ("job-running", "job-complete", "job-oom", "job-suspended"))),
    "pods": _make_list(*map(_own, ("pod-running", "pod-unschedulable", "pod-image", "pod-crash", "pod-secret"))),
    "nodes": _make_list(NODE),
    "events": _make_list(EVENT),
    "selfsubjectaccessreviews": {"status": {"allowed": True}},
    "selfsubjectreviews": {"metadata": {"creationTimestamp": NOON}, "status": {"userInfo": ME}},
    "serviceaccounts": {"metadata": {"name": "benchmatrix-cell"}},
    "secrets": {"metadata": {"name": "store"}, "data": {"AWS_ACCESS_KEY_ID": "eA==", "AWS_SECRET_ACCESS_KEY": "eA=="}},
    "persistentvolumeclaims": {"metadata": {"name": "data"}, "status": {"phase": "Bound"}},
    "resourcequotas": _make_list({"metadata": {"name": "q"}, "status": {"hard": {"pods": "5"}, "used": {"pods": "1"}}}),
    "limitranges": _make_list({"metadata": {"name": "l"}, "spec": {"limits": [LIMIT]}}),
    "localqueues": {"metadata": {"name": "q"}, "spec": {"clusterQueue": "c"}, "status": {"conditions": [CONDITION]}},
    "clusterqueues": {
        "metadata": {"name": "c"},
        "spec": {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
            {"name": "f", "resources": [{"name": "cpu", "nominalQuota": "9"}]}]}]},
        "status": {"conditions": [CONDITION]},
    },
    "resourceflavors": {"metadata": {"name": "f"}, "spec": {"nodeLabels": {"a": "b"}}},
    "workloads": _make_list({
        "metadata": {"name": "w", "labels": {"kueue.x-k8s.io/job-uid": "u"}},
        "spec": {"active": True},
        "status": {"conditions": [CONDITION | {"type": "QuotaReserved", "status": "False"}]},
    }),
    "kueue.x-k8s.io": {"versions": [{"groupVersion": "kueue.x-k8s.io/v1beta1", "version": "v1beta1"}],
                       "preferredVersion": {"groupVersion": "kueue.x-k8s.io/v1beta1", "version": "v1beta1"}},
    "nodepools": _make_list({
        "metadata": {"name": "general"},
        "spec": {"limits": {"cpu": "9", "memory": "99Gi"}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "taints": [{"key": "x", "effect": "NoSchedule"}],
            "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]}}},
        "status": {"conditions": [{"type": "Ready", "status": "False", "message": "no"}]},
    }),
    "resourceslices": _make_list({"metadata": {"name": "s"}, "spec": {"devices": [{"name": "gpu-0"}]}}),
    "deployments": {"metadata": {"name": "s3"}, "status": {"availableReplicas": 1, "conditions": []}},
    "configmaps": {"data": {"status": "ok"}},
    "log": "a line of a log\n",
    "statuses": {"jobs": 200, "pods": 200, "nodes": 200},
}  # fmt: skip
HTML_ANSWER = "<!doctype html><html><title>Sign in</title></html>"
clusters: Contents = draw_garbled(draw_changed([CLUSTER]).map(dump_json)) | draw_changed(
    [CLUSTER] * 6
    + [CLUSTER | {kind: HTML_ANSWER} for kind in ("jobs", "nodes", "version")]
    + [
        CLUSTER | {"statuses": {kind: status}}
        for kind in ("jobs", "nodes", "secrets")
        for status in (401, 403, 404, 409, 422)
    ],
    [("nodes", "metadata", "continue"), ("jobs", "metadata", "continue")],
).map(dump_json)
ODD_KEYS = (
    "runs//run.json",
    f"runs/{RUN_A}/results/../x.json",
    "runs/a\x7fb/run.json",
    f"runs/{RUN_A}/results//1-a.json",
)
store_servers: Contents = draw_changed(
    [S3_TRUTH] * 4
    + [S3_TRUTH | {"more": [key]} for key in ODD_KEYS]
    + [S3_TRUTH | {"more": list(ODD_KEYS), "root": "html"}]
    + [S3_TRUTH | {"statuses": {verb: code}} for verb in ("list", "get", "put") for code in (304, 401, 403, 404)],
    [("more", 0), ("body",), ("entry", "Key"), ("headers", "Content-Length"), ("listing", "NextContinuationToken")],
).map(dump_json)
