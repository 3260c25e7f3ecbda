"""The checks of doctor, in the order in which to fix what they find: API server, namespace, nodes, queue, store."""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from bench.errors import UserError
from bench.schema import PlannedCell
from bench.store import Store, StoreError
from collector.units import join_some
from runner.kubernetes.cleanup import MAX_NAMED, find_orphaned_pods, name_pods
from runner.kubernetes.connection import ApiError, Connection, JsonObject, decode_answer
from runner.kubernetes.names import COMPONENT, JobKey
from runner.kubernetes.node_checks import (
    SETUP,
    CellKind,
    Finding,
    FindingState,
    Subject,
    check_claims,
    check_nodes,
    check_object,
    check_queue,
    explain_unchecked,
)
from runner.kubernetes.objects import list_others, read_quantity
from runner.kubernetes.permissions import (
    CLEANUP_PERMISSIONS,
    NODE_PERMISSION,
    QUEUE_PERMISSIONS,
    RUN_PERMISSIONS,
    Permission,
    list_refused,
    name_self,
)
from runner.kubernetes.rendering import JobRenderer
from runner.kubernetes.run import ClusterTarget
from runner.matrix.expansion import Matrix
from runner.profiles import BUCKET_URLS, IN_CLUSTER
from runner.profiles.model import Profile
from runner.terminal import hide_credentials


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

ANY_STORE = "s3://bucket/prefix"
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
    first: dict[tuple[object, ...], PlannedCell] = {}
    for planned in runnable:
        cell = planned.cell
        first.setdefault((cell.framework, cell.device, cell.num_gpus, cell.tenants, cell.sharing), planned)
    kinds = []
    for planned in first.values():
        cell, profile, problem = planned.cell, target.profile, None
        try:
            profile.find_image(cell)
        except UserError as error:
            problem = _describe_problem(error)
            profile = profile.model_copy(update={"images": {cell.framework: {cell.device: ANY_IMAGE}}})
        try:
            job = _render_job(planned, profile, store_url or ANY_STORE, target.queue)
            kinds.append(CellKind(cell=cell, job=job))
        except UserError as error:
            findings.append(_describe_problem(error))
        findings += [problem] if problem else []
    return kinds, findings


def _describe_problem(error: UserError) -> Finding:
    message, _, hint = str(error).partition("; ")
    return Finding("profile", "failed", message, hint)


def _render_job(planned: PlannedCell, profile: Profile, store_url: str, queue: str | None) -> JsonObject:
    renderer = JobRenderer(profile=profile, store_url=store_url, git_revision=None, queue=queue)
    key = JobKey(run_id="doctor", cell_id=planned.cell.cell_id, number=1, retry_round=0)
    job: JsonObject = json.loads(renderer.render(planned, key))
    return job


# The API server, and what the user may do.

MIN_VERSION = (1, 29)
"""The first with `podReplacementPolicy` of Jobs enabled by default: in earlier ones two attempts may run at once.
https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/ (JobPodReplacementPolicy)"""


def check_version(subject: Subject) -> Finding:
    version = subject.connection.get_object("/version")
    message = f"{version['gitVersion']}, where you are {name_self(subject.connection)}"
    number = tuple(int(re.sub(r"\D.*", "", version[name]) or 0) for name in ("major", "minor"))  # GKE: `34+`
    if number < MIN_VERSION:
        needed = ".".join(map(str, MIN_VERSION))
        hint = f"Jobs need {needed} or newer: before it, two attempts at a cell may run at once"
        return Finding("API server", "failed", message, hint)
    return Finding("API server", "ok", message)


def check_permissions(subject: Subject) -> Iterator[Finding]:
    """Find whether the user may do what the runner does. What it can do without is a warning at most."""
    queue = subject.target.queue
    # A runner in the cluster needs none of those to clean up.
    housekeeping = () if subject.target.context == IN_CLUSTER else CLEANUP_PERMISSIONS
    for permission in RUN_PERMISSIONS:
        yield _check_permission(subject, permission, "", "failed", "setup")
    for permission in housekeeping:
        yield _check_permission(subject, permission, ", to cancel and clean", "warning", "setup")
    for permission in () if queue is None else QUEUE_PERMISSIONS:
        yield _check_permission(subject, permission, ", to explain what waits", "warning", f"setup --queue {queue}")
    check, nodes = f"permission: {NODE_PERMISSION.resource}, to say which machines", NODE_PERMISSION
    if not list_refused(subject.connection, nodes, ""):
        yield Finding(check, "ok", ", ".join(nodes.verbs))
    else:  # a run measures all the same
        hint = (
            f"needed to {nodes.purpose}, which is unknown otherwise; an administrator grants it: `kubectl create "
            "clusterrole benchmatrix-nodes --verb get,list --resource nodes`, then `kubectl create clusterrolebinding "
            "benchmatrix-nodes --clusterrole benchmatrix-nodes --user NAME`, with the name above"
        )
        yield Finding(check, "warning", "you may not get and list nodes", hint)


def _check_permission(
    subject: Subject, permission: Permission, what_for: str, if_refused: FindingState, remedy: str
) -> Finding:
    check = f"permission: {permission.resource}{what_for}"
    refused = list_refused(subject.connection, permission, subject.namespace)
    if not refused:
        return Finding(check, "ok", ", ".join(permission.verbs))
    message = f"you may not {', '.join(refused)} {permission.resource} in namespace {subject.namespace}"
    hint = f"needed to {permission.purpose}; `benchmatrix {remedy} --user NAME` by an administrator grants it"
    return Finding(check, if_refused, message, hint)


# The namespace, what the cells need in it, and whether it takes their Jobs and pods.

POD_SECURITY = "pod-security.kubernetes.io/enforce"
SECRET_KEYS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_SERVICE_ACCOUNT_KEY (the JSON of a service account's key)",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
"""By the scheme of the store: the variables that the store library takes credentials from.
https://docs.rs/object_store/latest/object_store/gcp/enum.GoogleConfigKey.html
https://docs.rs/object_store/latest/object_store/azure/enum.AzureConfigKey.html"""
NO_ACCOUNT = "error looking up service account"
MAX_CHANGES = 5


def check_namespace(subject: Subject) -> Iterator[Finding]:
    name = subject.namespace
    found = subject.find(f"/api/v1/namespaces/{name}")
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
        hint = explain_store_secret(profile.store_secret, subject.namespace, subject.store_url)
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
    if profile.priority_class:
        hint = "create the PriorityClass, or leave `priority_class` out of the profile"
        path = "/apis/scheduling.k8s.io/v1/priorityclasses"
        wanted.append(("priority class", path, profile.priority_class, hint))
    for name in sorted({kind.pod_spec.get("runtimeClassName") or "" for kind in subject.kinds} - {""}):
        hint = "have the GPU's runtime make it, or set `runtime_class_name: null` in the profile"
        wanted.append(("runtime class", "/apis/node.k8s.io/v1/runtimeclasses", name, hint))
    for check, path, name, hint in wanted:
        yield check_object(subject, check, path, name, hint)


def explain_store_secret(name: str, namespace: str, store_url: str | None) -> str:
    """Return how to make the Secret that cells read the store's credentials from; `store_url`: None if unknown."""
    scheme = (store_url or "").partition("://")[0]
    keys = SECRET_KEYS.get(scheme) or "; ".join(f"{known}://: {words}" for known, words in SECRET_KEYS.items())
    return f"kubectl create secret generic {name} --namespace {namespace}, with the keys of the store: {keys}"


def check_jobs(subject: Subject) -> Iterator[Finding]:
    """Submit a Job of each kind as a dry run, so that everything that may refuse it is asked."""
    for kind in subject.kinds:
        check = f"Job: {kind.cell.framework} on {kind.place}"
        answer = _try(subject, check, f"/apis/batch/v1/namespaces/{subject.namespace}/jobs", kind.job)
        yield answer if isinstance(answer, Finding) else Finding(check, "ok", "the API server would take it")


def check_pods(subject: Subject) -> Iterator[Finding]:
    """Submit a pod of each kind of Job as a dry run: quotas, limits and policies judge and change pods, not Jobs.

    Only who may create pods can ask; a run needs no such right.
    """
    for kind in subject.kinds:
        check, template = f"pod: {kind.cell.framework} on {kind.place}", kind.job["spec"]["template"]
        metadata = template["metadata"] | {"generateName": "doctor-"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        answer = _try(subject, check, f"/api/v1/namespaces/{subject.namespace}/pods", pod)
        if isinstance(answer, Finding):
            yield answer
            if answer.state == "warning":  # and so would the others be
                return
        elif changes := describe_pod_changes(template, answer):
            message = f"a webhook or policy of the cluster changes it: {changes}"
            hint = "what is added takes CPU and memory beside the measurement"
            yield Finding(check, "warning", message, f"{hint}: have it leave this namespace or these pods alone")
        else:
            yield Finding(check, "ok", "the API server would take it as it is")


def _try(subject: Subject, check: str, path: str, body: JsonObject) -> JsonObject | Finding:
    """Return the object that the API server would make, or why it would not."""
    try:
        answer = subject.connection.request("create", path, query={"dryRun": "All"}, body=json.dumps(body).encode())
        return decode_answer(answer)
    except ApiError as error:
        # A quota or a webhook may answer the same, without the words of RBAC.
        if error.status == HTTPStatus.FORBIDDEN and " cannot create resource " in error.message:
            return explain_unchecked(check, error)
        if error.status == HTTPStatus.NOT_FOUND or NO_ACCOUNT in error.message:
            return Finding(check, "warning", f"not tried: {error.message}", "fix the namespace first")
        hint = "the message names the field, the quota, the limit, the policy or the webhook that is in the way"
        return Finding(check, "failed", error.message, hint)


def check_orphaned_pods(subject: Subject) -> Iterator[Finding]:
    """Find pods of cells whose Job is gone: they take cores and memory, and nobody deletes them."""
    found = find_orphaned_pods(subject.connection, subject.namespace, COMPONENT)
    if pods := [pod for pod in found if not pod.has_ended]:
        runs = sorted({pod.run_id for pod in pods})
        message = f"{name_pods(pods)}, of {join_some(runs, MAX_NAMED)}: their Jobs are gone, and nothing deletes them"
        where = f"--on {subject.target.context} --namespace {subject.namespace} --store {subject.store_url or 'URL'}"
        hint = f"wait for those that run, or: benchmatrix clean {runs[0]} {where} --force"
        yield Finding("pods without a Job", "warning", message, hint)


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
    return join_some(changes, MAX_CHANGES, separator="; ")


# The store.

ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Variables that lead S3 clients elsewhere than to Amazon, the first one first
(https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html)."""


def check_store(url: str | None) -> Finding:
    """Check whether this machine can write to the store; one in a directory fails, as a cluster's cells do not see it.

    `url`: None if no store was given.
    """
    if url is None:
        return Finding("store", "warning", "not checked: no --store was given", f"add --store: {BUCKET_URLS}")
    if url.startswith("file:"):
        message = f"{url}: the cells on a cluster do not see this machine's directories"
        return Finding("store", "failed", message, f"name a bucket, {BUCKET_URLS}")
    try:
        Store.open(url).check_writable()
    except StoreError as error:
        message, _, hint = str(error).partition("; ")
        return Finding("store", "failed", message, hint)
    return Finding("store", "ok", f"{url} can be written from here; cells have their own identity")


def check_cells_endpoint(subject: Subject) -> Iterator[Finding]:
    """Find whether the cells know of an S3 server that this shell names; its address may be another one to them."""
    profile, own = subject.profile, next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), "")
    if not own or not (subject.store_url or "").startswith("s3:") or set(ENDPOINTS) & profile.environment.keys():
        return
    path = f"/api/v1/namespaces/{subject.namespace}/secrets/{profile.store_secret}"
    secret = (subject.find(path) if profile.store_secret else None) or {}
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
    "pods without a Job": check_orphaned_pods,
    "nodes": check_nodes,
    "claims": check_claims,
    "queue": check_queue,
    "store of the cells": check_cells_endpoint,
}
"""By what is said to be not checked where the API server does not show it."""
