"""The checks of doctor, in the order in which to fix what they find: API server, namespace, nodes, queue, store."""

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

import pydantic

from bench.errors import UserError
from bench.schema import Cell, Device, Document, Framework, PlannedCell
from bench.store import Store, StoreError
from collector.units import join_some
from runner.images import locate_requirements
from runner.kubernetes.capacity import (
    NodeStatus,
    describe_fit,
    find_api_version,
    fit_pod,
    list_label_misfits,
    read_node_status,
)
from runner.kubernetes.connection import ApiError, BusyError, Connection, JsonObject, decode_answer
from runner.kubernetes.names import JobKey
from runner.kubernetes.objects import list_others, read_quantity
from runner.kubernetes.rendering import JobRenderer
from runner.kubernetes.run import ClusterTarget
from runner.kubernetes.setup import (
    CLEANUP_PERMISSIONS,
    NODE_PERMISSION,
    QUEUE_PERMISSIONS,
    RUN_PERMISSIONS,
    Permission,
    describe_missing,
    name_self,
)
from runner.matrix import Matrix
from runner.profiles import BUCKET_URLS, IN_CLUSTER
from runner.profiles.model import Profile, is_shared
from runner.sources import find_source
from runner.terminal import hide_credentials

SETUP = "`benchmatrix setup` creates it"
FindingState = Literal["ok", "warning", "failed"]


@pydantic.dataclasses.dataclass(frozen=True, config=pydantic.ConfigDict(use_attribute_docstrings=True))
class Finding:
    """What was found out about one precondition."""

    check: str
    state: FindingState
    """`warning`: it could not be checked, or a run may go well without it."""
    message: str
    hint: str = ""
    """How to fix it; empty if the check passed."""
    details: tuple[str, ...] = ()
    """Lines below it, such as groups of nodes."""


class DoctorDocument(Document):
    """What `benchmatrix doctor` found."""

    context: str
    namespace: str
    profile: str
    findings: tuple[Finding, ...]


def judge(check: str, good: str, problem: str, hint: str, state: FindingState = "failed") -> Finding:
    """Return that a check passed, in the words of `good`, or its problem if there is one."""
    return Finding(check, state, problem, hint) if problem else Finding(check, "ok", good)


@dataclass(frozen=True, kw_only=True)
class CellKind:
    """Cells that differ in nothing that the cluster sees, and the Job of one of them."""

    cell: Cell
    job: JsonObject

    @property
    def place(self) -> str:
        """What decides on which nodes they can run: `the CPU`, `2 GPUs`, `1 GPU shared by 4 (mps)`."""
        cell = self.cell
        place = "the CPU" if cell.device == "cpu" else f"{cell.num_gpus} GPU{'s' if cell.num_gpus > 1 else ''}"
        if is_shared(cell):
            return f"{place} shared by {cell.tenants} ({cell.sharing})"
        return f"{place} with {cell.tenants} tenants" if cell.tenants > 1 else place

    @property
    def pod_spec(self) -> Mapping[str, Any]:
        spec: Mapping[str, Any] = self.job["spec"]["template"]["spec"]
        return spec


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A cluster, and the kinds of cells that are to run there."""

    connection: Connection
    target: ClusterTarget
    kinds: Sequence[CellKind]
    store_url: str | None
    """Where the results will go. None: it was not said."""

    @property
    def profile(self) -> Profile:
        return self.target.profile

    @property
    def namespace(self) -> str:
        return self.profile.namespace


def check_object(subject: Subject, check: str, path: str, name: str, hint: str) -> Finding:
    try:
        found = subject.connection.find_object(f"{path}/{name}")
    except ApiError as error:
        return explain_unchecked(check, error)
    return judge(check, f"{name} is there", "" if found else f"there is no {name}", hint)


def explain_unchecked(check: str, error: ApiError) -> Finding:
    if error.status == HTTPStatus.FORBIDDEN:
        hint = "ask somebody with that permission to run `benchmatrix doctor`, or go on without"
        return Finding(check, "warning", f"not checked: you lack the permission: {error.message}", hint)
    hint = "try again when it is back" if isinstance(error, BusyError) else "ask the cluster's administrator"
    return Finding(check, "failed", f"not checked: {error.message}", hint)


def examine(connection: Connection, target: ClusterTarget, matrix: Matrix, store_url: str | None) -> Iterator[Finding]:
    """Check each precondition of a run, and yield the findings; nothing more is checked if no API server answers."""
    kinds, findings = render_kinds(target, matrix, store_url)
    yield from findings
    subject = Subject(connection=connection, target=target, kinds=kinds, store_url=store_url)
    try:
        yield check_version(subject)
    except ApiError as error:
        is_refused = error.status == HTTPStatus.UNAUTHORIZED
        hint = "log in to the cluster again" if is_refused else "check that it runs, and the server in the kubeconfig"
        yield Finding("API server", "failed", error.message, hint)
    else:
        for name, check in CHECKS.items():
            try:
                yield from check(subject)
            except ApiError as error:  # what the API server refuses to show is a finding as well
                yield explain_unchecked(name, error)
    yield check_store(store_url)


# What follows from profile and matrix alone.

ANY_IMAGE = "registry.invalid/image"
"""Stands for an image that the profile does not name, so that all else can be looked at; `.invalid` is nobody's."""


def render_kinds(target: ClusterTarget, matrix: Matrix, store_url: str | None) -> tuple[list[CellKind], list[Finding]]:
    """Return each kind of cell that can run by the profile, and what was found of the others."""
    reasons = [target.profile.explain_unsupported(planned.cell) for planned in matrix.cells]
    runnable = [planned for planned, reason in zip(matrix.cells, reasons, strict=True) if reason is None]
    message = f"{len(runnable)} of {len(matrix.cells)} cells of {matrix.name} can run here by the profile"
    details = tuple(f"{number} cannot: {reason}" for reason, number in Counter(filter(None, reasons)).most_common())
    findings = [Finding("cells", "ok", message, details=details)]
    if not runnable:
        findings = [Finding("cells", "failed", message, "name another matrix or another --profile", details)]
    profile, images, kinds = target.profile, defaultdict[Framework, dict[Device, str]](dict), []
    problems: dict[str, None] = {}
    first: dict[tuple[object, ...], PlannedCell] = {}
    for planned in runnable:
        cell = planned.cell
        first.setdefault((cell.framework, cell.device, cell.num_gpus, cell.tenants, cell.sharing), planned)
    for planned in first.values():
        cell = planned.cell
        try:
            images[cell.framework][cell.device] = profile.find_image(cell)
        except UserError as error:
            images[cell.framework][cell.device] = ANY_IMAGE
            problems[str(error)] = None
    renderer = JobRenderer(
        profile=profile.model_copy(update={"images": images}),
        store_url=store_url or "s3://bucket/prefix",
        git_revision=None,
        queue=target.queue,
    )
    for planned in first.values():
        key = JobKey(run_id="doctor", cell_id=planned.cell.cell_id, number=1, retry_round=0)
        try:
            kinds.append(CellKind(cell=planned.cell, job=json.loads(renderer.render(planned, key))))
        except UserError as error:
            problems[str(error)] = None
    return kinds, [*findings, *(_split_problem("profile", problem) for problem in problems)]


def _split_problem(check: str, problem: object) -> Finding:
    """Return the finding of an error of ours, whose remedy stands behind a semicolon."""
    message, _, hint = str(problem).partition("; ")
    return Finding(check, "failed", message, hint)


# The API server, and what the user may do.

MIN_VERSION = (1, 29)
"""The first with `podReplacementPolicy` of Jobs enabled by default: in earlier ones two attempts may run at once.
https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/ (JobPodReplacementPolicy)"""


def check_version(subject: Subject) -> Finding:
    version = subject.connection.get_object("/version")
    message = f"{version['gitVersion']}, where you are {name_self(subject.connection)}"
    number = tuple(int(re.sub(r"\D.*", "", version[name]) or 0) for name in ("major", "minor"))  # GKE: `34+`
    hint = f"Jobs need {'.'.join(map(str, MIN_VERSION))} or newer: before it, two attempts at a cell may run at once"
    return judge("API server", message, message if number < MIN_VERSION else "", hint)


def check_permissions(subject: Subject) -> Iterator[Finding]:
    """Yield whether the user has each permission of the runner; one it can do without is a warning at most."""
    queue, namespace = subject.target.queue, subject.namespace
    grant = f"`benchmatrix setup{f' --queue {queue}' if queue else ''} --user NAME` by an administrator grants them"
    grant_nodes = (
        "an administrator grants it: `kubectl create clusterrole benchmatrix-nodes --verb get,list --resource nodes`, "
        "then `kubectl create clusterrolebinding benchmatrix-nodes --clusterrole benchmatrix-nodes --user NAME`, with "
        "the name above"
    )
    # A runner in the cluster needs none of those to clean up.
    housekeeping = () if subject.target.context == IN_CLUSTER else CLEANUP_PERMISSIONS
    wanted: list[tuple[str, Sequence[Permission], FindingState, str, str]] = [
        ("of a run", RUN_PERMISSIONS, "failed", namespace, grant),
        ("to cancel and clean", housekeeping, "warning", namespace, grant),
        ("to explain what waits", QUEUE_PERMISSIONS if queue else (), "warning", namespace, grant),
        ("to say which machines", (NODE_PERMISSION,), "warning", "", grant_nodes),
    ]
    for purpose, permissions, state, where, remedy in wanted:
        if permissions:
            missing = describe_missing(subject.connection, permissions, where)
            problem = missing and f"you may not {missing}{f' in namespace {where}' if where else ''}"
            yield judge(f"permissions {purpose}", "all are there", problem, remedy, state)


# The namespace, what the cells need in it, and whether it takes their Jobs and pods.

POD_SECURITY = "pod-security.kubernetes.io/enforce"
SECRET_KEYS = (
    "s3://: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; gs://: GOOGLE_SERVICE_ACCOUNT_KEY (the JSON of a service "
    "account's key); az://: AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"
)
"""The variables that the store library takes credentials from.
https://docs.rs/object_store/latest/object_store/gcp/enum.GoogleConfigKey.html
https://docs.rs/object_store/latest/object_store/azure/enum.AzureConfigKey.html"""
NO_ACCOUNT = "error looking up service account"


def check_namespace(subject: Subject) -> Iterator[Finding]:
    name = subject.namespace
    found = subject.connection.find_object(f"/api/v1/namespaces/{name}")
    level = found and found["metadata"].get("labels", {}).get(POD_SECURITY)
    if found is None:
        hint = f"{SETUP}; or name one: --namespace"
        yield Finding("namespace", "failed", f"there is no namespace {name}", hint)
    elif found.get("status", {}).get("phase") == "Terminating":
        yield Finding("namespace", "failed", f"{name} is being deleted", f"wait until it is gone; then {SETUP}")
    elif level in ("restricted", "baseline"):
        yield Finding("namespace", "ok", f"{name}, Pod Security level {level}")
    else:
        message = f"{name} has {f'the Pod Security level {level}' if level else 'no Pod Security level'}"
        command = f"kubectl label namespace {name} {POD_SECURITY}=restricted"
        yield Finding("namespace", "warning", message, f"cells meet `restricted`; to refuse other pods: {command}")


def check_objects(subject: Subject) -> Iterator[Finding]:
    profile, space = subject.profile, f"/api/v1/namespaces/{subject.namespace}"
    wanted = [("service account", f"{space}/serviceaccounts", profile.service_account, SETUP)]
    if profile.store_secret:
        where = f"{profile.store_secret} --namespace {subject.namespace}"
        hint = f"kubectl create secret generic {where}, with the keys of the store: {SECRET_KEYS}"
        wanted.append(("store secret", f"{space}/secrets", profile.store_secret, hint))
    for name in profile.image_pull_secrets:
        hint = (
            f"kubectl create secret docker-registry {name} --namespace {subject.namespace} "
            "--docker-server HOST --docker-username USER --docker-password TOKEN"
        )
        wanted.append(("image pull secret", f"{space}/secrets", name, hint))
    if profile.data:
        hint = "make the PersistentVolumeClaim, or leave `data` out of the profile"
        wanted.append(("data volume", f"{space}/persistentvolumeclaims", profile.data.claim, hint))
    for check, path, name, hint in wanted:
        yield check_object(subject, check, path, name, hint)


def check_jobs(subject: Subject) -> Iterator[Finding]:
    """Submit a Job of each kind as a dry run, so that everything that may refuse it is asked."""
    for kind in subject.kinds:
        yield _try(subject, "Job", kind, "/apis/batch/v1", kind.job)


def check_pods(subject: Subject) -> Iterator[Finding]:
    """Submit a pod of each kind of Job as a dry run: quotas, limits and policies judge and change pods, not Jobs.

    Only who may create pods can ask; a run needs no such right.
    """
    for kind in subject.kinds:
        template = kind.job["spec"]["template"]
        metadata = template["metadata"] | {"generateName": "doctor-"}
        pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}
        finding = _try(subject, "pod", kind, "/api/v1", pod)
        yield finding
        if finding.message.startswith("not "):  # tried, and nor would the others be
            return


def _try(subject: Subject, what: str, kind: CellKind, group: str, body: JsonObject) -> Finding:
    """Return whether the API server would make an object as it is, or why it would not."""
    check = f"{what}: {kind.cell.framework} on {kind.place}"
    path = f"{group}/namespaces/{subject.namespace}/{what.lower()}s"
    try:
        answer = subject.connection.request("create", path, query={"dryRun": "All"}, body=json.dumps(body).encode())
    except ApiError as error:
        # A quota or a webhook may answer the same, without the words of RBAC.
        if error.status == HTTPStatus.FORBIDDEN and " cannot create resource " in error.message:
            return explain_unchecked(check, error)
        if error.status == HTTPStatus.NOT_FOUND or NO_ACCOUNT in error.message:
            return Finding(check, "warning", f"not tried: {error.message}", "fix the namespace first")
        hint = "the message names the field, the quota, the limit, the policy or the webhook that is in the way"
        return Finding(check, "failed", error.message, hint)
    changes = describe_pod_changes(body, decode_answer(answer)) if what == "pod" else ""
    problem = changes and f"a webhook or policy of the cluster changes it: {changes}"
    hint = "what is added takes CPU and memory beside the measurement: have it leave this namespace or these pods alone"
    return judge(check, "the API server would take it as it is", problem, hint, "warning")


def describe_pod_changes(template: Mapping[str, Any], pod: Mapping[str, Any]) -> str:
    """Return what a policy of the cluster made of a pod that decides what is measured; empty if nothing was changed."""
    changes = [f"the container {name} was added" for name in list_others(pod["spec"])]
    made = {container["name"]: container for container in pod["spec"]["containers"]}
    for asked in template["spec"]["containers"]:
        name, found = asked["name"], made[asked["name"]]
        if found["image"] != asked["image"]:
            changes.append(f"the image of {name} is {found['image']} instead of {asked['image']}")
        known = {variable["name"] for variable in asked["env"]}
        changes += [f"{name} has the variable {one['name']}" for one in found["env"] if one["name"] not in known]
        for kind in ("requests", "limits"):
            for resource, amount in asked["resources"][kind].items():
                given = found["resources"].get(kind, {}).get(resource, "0")
                if read_quantity(given) != read_quantity(amount):
                    changes.append(f"{kind} of {name}: {given} {resource} instead of {amount}")
    return join_some(changes, 5, separator="; ")


# The nodes: which can hold the cells, and GPUs with drivers new enough.

AUTOSCALERS = {
    "Karpenter": "/apis/karpenter.sh",
    "the cluster autoscaler": "/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status",
}
"""What adds nodes to a cluster, by what is known to leave a sign."""
# Labels of GPU feature discovery, newer name first:
# https://github.com/NVIDIA/k8s-device-plugin/tree/main/docs/gpu-feature-discovery#generated-labels
DRIVER_LABELS = ("nvidia.com/cuda.driver-version.major", "nvidia.com/cuda.driver.major")
# By major version of CUDA: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
MIN_DRIVERS = {11: 450, 12: 525, 13: 580}
DRA = "/apis/resource.k8s.io/v1"


def check_nodes(subject: Subject) -> Iterator[Finding]:
    nodes = subject.connection.read_items("/api/v1/nodes", read_node_status)
    autoscaler = _find_autoscaler(subject.connection)
    for kind in {each.place: each for each in subject.kinds}.values():  # one of those that run on the same nodes
        groups = fit_pod(kind.pod_spec, nodes)
        num_fitting, details = len(groups.get("", ())), describe_fit(groups)
        check = f"nodes for cells on {kind.place}"
        message = f"{num_fitting or 'none'} of {len(nodes)} nodes can hold one"
        if num_fitting:
            yield Finding(check, "ok", message, details=details)
        elif autoscaler:
            hint = f"{autoscaler} may add one that can; see that one of its pools has what is missing"
            yield Finding(check, "warning", message, hint, details)
        else:
            hint = "add such a node, or change the pool of the profile: its labels, tolerations, cpus or memory"
            if kind.cell.device == "gpu":
                hint += "; where nodes offer no GPU: https://github.com/NVIDIA/k8s-device-plugin"
            yield Finding(check, "failed", message, hint, details)
    yield from _check_drivers(subject, nodes)


def _find_autoscaler(connection: Connection) -> str:
    for name, path in AUTOSCALERS.items():
        with suppress(ApiError):
            if connection.find_object(path):
                return name
    return ""


def _check_drivers(subject: Subject, nodes: Sequence[NodeStatus]) -> Iterator[Finding]:
    kinds = [kind for kind in subject.kinds if kind.cell.device == "gpu"]
    labelled = [node for node in nodes if any(not any(list_label_misfits(kind.pod_spec, node)) for kind in kinds)]
    texts = {one.name: next((one.labels[key] for key in DRIVER_LABELS if key in one.labels), "") for one in labelled}
    known = {name: int(text) for name, text in texts.items() if text.isdigit()}
    for framework in sorted({kind.cell.framework for kind in kinds}) if labelled else ():
        check, (major, minor) = f"driver: {framework}", read_image_cuda(framework)
        least = MIN_DRIVERS[major]
        needs = f"CUDA {major}.{minor} of images/{framework} needs a driver from {least} on"
        if too_old := [name for name, driver in known.items() if driver < least]:
            older = f"{len(too_old)} of {len(texts)} nodes have an older one: {known[too_old[0]]} on {too_old[0]}"
            state: FindingState = "failed" if len(too_old) == len(texts) else "warning"
            yield Finding(check, state, f"{needs}; {older}", "update the driver, or use an image with an older CUDA")
        elif len(known) < len(texts):
            message = f"{needs}; unknown on {len(texts) - len(known)} of {len(texts)} nodes: no label names it"
            yield Finding(check, "warning", message, "GPU feature discovery sets it; or see `nvidia-smi` on a node")
        else:
            yield Finding(check, "ok", f"{needs}; the oldest is {min(known.values())}")


def read_image_cuda(framework: Framework) -> tuple[int, int]:
    text = find_source(locate_requirements(framework, "cuda")).read_text()
    found = re.search(r"^nvidia-cuda-runtime(?:-cu\d+)?==(\d+)\.(\d+)", text, re.MULTILINE)
    assert found is not None
    return int(found[1]), int(found[2])


def check_claims(subject: Subject) -> Iterator[Finding]:
    gpus = subject.profile.gpu
    if gpus is None or gpus.request != "claim":
        return
    hint = "install the GPU's DRA driver (Kubernetes 1.34 or newer), or write `gpu.request: limit` in the profile"
    yield check_object(subject, "device class", f"{DRA}/deviceclasses", gpus.device_class, hint)
    for num_gpus in sorted({kind.cell.num_gpus for kind in subject.kinds if kind.cell.device == "gpu"}):
        path = f"{DRA}/namespaces/{subject.namespace}/resourceclaimtemplates"
        yield check_object(subject, "claim template", path, gpus.name_claim_template(num_gpus), SETUP)
    slices = subject.connection.list_items(f"{DRA}/resourceslices")
    num_devices = sum(len(item["spec"].get("devices") or ()) for item in slices)
    message, hint = f"{num_devices} in {len(slices)} ResourceSlices", "see that its DRA driver runs on the GPU nodes"
    yield judge("devices to claim", message, "" if num_devices else message, hint)


def check_queue(subject: Subject) -> Iterator[Finding]:
    queue = subject.target.queue
    if queue is None:
        return
    version = find_api_version(subject.connection)
    if version is None:
        hint = "install it (https://kueue.sigs.k8s.io/docs/installation/), or leave --queue out"
        yield Finding("queue", "failed", "the cluster has no Kueue: it does not know kueue.x-k8s.io", hint)
        return
    path = f"/apis/{version}/namespaces/{subject.namespace}/localqueues/{queue}"
    local = subject.connection.find_object(path)
    if local is None:
        hint = "have an administrator make one (docs/kubernetes.md has an example), or name another with --queue"
        yield Finding("queue", "failed", f"namespace {subject.namespace} has no LocalQueue {queue}", hint)
        return
    conditions = {item["type"]: item for item in local.get("status", {}).get("conditions") or ()}
    active = conditions.get("Active", {})
    reason = active.get("message") or active.get("reason") or "no reason given"
    inactive = reason if active.get("status") == "False" else ""
    words = f"LocalQueue {queue} of ClusterQueue {local['spec']['clusterQueue']}"
    hint = "no Job of it starts until its owner has put that right"
    yield judge("queue", f"{words} is active ({version})", inactive and f"{words}: {inactive}", hint)


ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Variables that lead S3 clients elsewhere than to Amazon, the first one first
(https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html)."""


def check_store(url: str | None) -> Finding:
    """Check whether this machine can write to the store; a directory fails, as cells on a cluster do not see it."""
    if url is None:
        return Finding("store", "warning", "not checked: no --store was given", f"add --store: {BUCKET_URLS}")
    if url.startswith("file:"):
        message = f"{url}: the cells on a cluster do not see this machine's directories"
        return Finding("store", "failed", message, f"name a bucket, {BUCKET_URLS}")
    try:
        Store.open(url).check_writable()
    except StoreError as error:
        return _split_problem("store", error)
    return Finding("store", "ok", f"{url} can be written from here; cells have their own identity")


def check_cells_endpoint(subject: Subject) -> Iterator[Finding]:
    """Find whether the cells know of an S3 server that this shell names; its address may be another one to them."""
    profile, own = subject.profile, next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), "")
    if not own or not (subject.store_url or "").startswith("s3:") or set(ENDPOINTS) & profile.environment.keys():
        return
    path = f"/api/v1/namespaces/{subject.namespace}/secrets/{profile.store_secret}"
    secret = (subject.connection.find_object(path) if profile.store_secret else None) or {}
    if not set(ENDPOINTS) & (secret.get("data") or {}).keys():
        here = f"this shell finds the S3 server by AWS_ENDPOINT_URL={hide_credentials(own)}"
        hint = "write `environment: {AWS_ENDPOINT_URL: URL}` in the profile, with an address that pods reach"
        yield Finding("store of the cells", "failed", f"{here}, and the cells would ask Amazon's", hint)


CHECKS: Mapping[str, Callable[[Subject], Iterable[Finding]]] = {
    "permissions": check_permissions,
    "namespace": check_namespace,
    "objects": check_objects,
    "Jobs": check_jobs,
    "pods": check_pods,
    "nodes": check_nodes,
    "claims": check_claims,
    "queue": check_queue,
    "store of the cells": check_cells_endpoint,
}
"""By what is said to be not checked where the API server does not show it."""
