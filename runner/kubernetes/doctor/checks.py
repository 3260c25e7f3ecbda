"""The checks of doctor in the order in which to fix what they find: API server, namespace, nodes, queue, store."""

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from bench.store import Store, StoreError
from collector.word_lists import join_some
from runner.cluster_contexts import IN_CLUSTER
from runner.kubernetes.changed_pods import describe_pod_changes
from runner.kubernetes.cleanup import MAX_NAMED, find_orphaned_pods, name_pods
from runner.kubernetes.connection import ApiError, JsonObject, decode_answer
from runner.kubernetes.doctor import (
    CellKind,
    DoctorContext,
    Finding,
    FindingState,
    explain_unchecked,
    find_object,
)
from runner.kubernetes.doctor.nodes import ClusterInventory, check_claims, check_gpus, check_images, check_nodes
from runner.kubernetes.fit import format_amount, sum_requests
from runner.kubernetes.kueue import find_api_version, read_inactivity
from runner.kubernetes.names import COMPONENT
from runner.kubernetes.objects import read_quantity
from runner.kubernetes.permissions import (
    CLEANUP_PERMISSIONS,
    NODE_PERMISSION,
    QUEUE_PERMISSIONS,
    RUN_PERMISSIONS,
    Permission,
    may,
    review_self,
)
from runner.kubernetes.session import POD_FIELDS
from runner.profiles.model import Profile
from runner.store_urls import BUCKET_URLS
from runner.terminal_text import hide_credentials

API_SERVER, CLOCK = "API server", "clock"
MIN_VERSION = (1, 29)
"""The first with `podReplacementPolicy` of Jobs enabled by default: in earlier ones two attempts may run at once.
https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/ (JobPodReplacementPolicy)"""
SKEW_SECONDS = 5.0
"""More than the time of a request and the server's rounding to whole seconds explain."""
MAX_SKEW_SECONDS = 900.0
"""S3 refuses signatures that are off by more: RequestTimeTooSkewed,
https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html"""


def check_version(context: DoctorContext) -> Finding:
    version = context.connection.get_object("/version")
    user = review_self(context.connection)[0]
    number = _read_version(version)
    message = f"{version['gitVersion']}, where you are {user}"
    if number < MIN_VERSION:
        needed = ".".join(map(str, MIN_VERSION))
        hint = f"Jobs need {needed} or newer: before it, two attempts at a cell may run at once"
        return Finding(check=API_SERVER, state="failed", message=message, hint=hint)
    return Finding(check=API_SERVER, state="ok", message=message)


def _read_version(version: JsonObject) -> tuple[int, int]:
    major, minor = (re.match("[0-9]{1,4}", version[name]) for name in ("major", "minor"))
    return (int(major[0]), int(minor[0])) if major and minor else (0, 0)


def explain_unreachable(error: ApiError) -> Finding:
    hint = (
        "log in to the cluster again"
        if error.status == HTTPStatus.UNAUTHORIZED
        else "check that it runs, and the server in the kubeconfig"
    )
    return Finding(check=API_SERVER, state="failed", message=error.message, hint=hint)


def check_clock(context: DoctorContext) -> Finding:
    before = datetime.now(UTC)
    created = review_self(context.connection)[1]
    if created is None:
        message = "not checked: the server does not give its time"
        return Finding(check=CLOCK, state="warning", message=message, hint="compare the clocks yourself")
    return describe_clock_finding(created, before=before, after=datetime.now(UTC))


def describe_clock_finding(server_time: datetime, *, before: datetime, after: datetime) -> Finding:
    """Return the finding about a clock. `server_time`, in whole seconds, was taken between `before` and `after`."""
    skew = max(0.0, (server_time - after).total_seconds(), (before - server_time).total_seconds() - 1)
    message = f"{skew:.0f} s from the server's" if skew else "agrees with the server's"
    if skew <= SKEW_SECONDS:
        return Finding(check=CLOCK, state="ok", message=message)
    state: FindingState = "failed" if skew > MAX_SKEW_SECONDS else "warning"
    return Finding(check=CLOCK, state=state, message=message, hint="set this machine's clock, for example by NTP")


def check_permissions(context: DoctorContext) -> Iterator[Finding]:
    """Find whether the user may do what the runner does. What it can do without is a warning at most."""
    for permission in RUN_PERMISSIONS:
        yield _check_permission(context, permission, f"permission: {permission.resource}", if_refused="failed")
    housekeeping = () if context.target.context == IN_CLUSTER else CLEANUP_PERMISSIONS  # a runner needs none of them
    for permission in housekeeping:
        check = f"permission: {permission.resource}, to cancel and clean"
        yield _check_permission(context, permission, check, if_refused="warning")
    for permission in QUEUE_PERMISSIONS if context.target.queue is not None else ():
        check = f"permission: {permission.resource}, to explain what waits"
        yield _check_permission(context, permission, check, if_refused="warning")
    yield _check_node_permission(context)


def _check_node_permission(context: DoctorContext) -> Finding:
    """Find whether results can say which machines they are from. Without, a run measures all the same."""
    check = f"permission: {NODE_PERMISSION.resource}, to say which machines"
    if all(may(context.connection, NODE_PERMISSION, verb, "") for verb in NODE_PERMISSION.verbs):
        return Finding(check=check, state="ok", message=", ".join(NODE_PERMISSION.verbs))
    hint = (
        f"needed to {NODE_PERMISSION.purpose}, which is unknown otherwise; an administrator grants it: `kubectl "
        "create clusterrole benchmatrix-nodes --verb get,list --resource nodes`, then `kubectl create "
        "clusterrolebinding benchmatrix-nodes --clusterrole benchmatrix-nodes --user NAME`, with the name above"
    )
    return Finding(check=check, state="warning", message="you may not get and list nodes", hint=hint)


def _check_permission(context: DoctorContext, permission: Permission, check: str, if_refused: FindingState) -> Finding:
    refused = [verb for verb in permission.verbs if not may(context.connection, permission, verb, context.namespace)]
    if not refused:
        return Finding(check=check, state="ok", message=", ".join(permission.verbs))
    message = f"you may not {', '.join(refused)} {permission.resource} in namespace {context.namespace}"
    words = f"setup --queue {context.target.queue}" if permission in QUEUE_PERMISSIONS else "setup"
    hint = f"needed to {permission.purpose}; `benchmatrix {words} --user NAME` by an administrator grants it"
    return Finding(check=check, state=if_refused, message=message, hint=hint)


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
CHANGED = "what is added takes CPU and memory beside the measurement: have it leave this namespace or these pods alone"
SETUP = "`benchmatrix setup` creates it"


def check_namespace(context: DoctorContext) -> Finding:
    found = find_object(context.connection, f"/api/v1/namespaces/{context.namespace}")
    if found is None:
        message = f"there is no namespace {context.namespace}"
        return Finding(check="namespace", state="failed", message=message, hint=f"{SETUP}; or name one: --namespace")
    if found.get("status", {}).get("phase") == "Terminating":
        message = f"{context.namespace} is being deleted"
        return Finding(check="namespace", state="failed", message=message, hint=f"wait until it is gone; then {SETUP}")
    level = found["metadata"].get("labels", {}).get(POD_SECURITY)
    if level in ("restricted", "baseline"):
        return Finding(check="namespace", state="ok", message=f"{context.namespace}, Pod Security level {level}")
    return Finding(
        check="namespace",
        state="warning",
        message=f"{context.namespace} has {f'the Pod Security level {level}' if level else 'no Pod Security level'}",
        hint=f"cells meet `restricted`; to refuse other pods: kubectl label namespace {context.namespace} "
        f"{POD_SECURITY}=restricted",
    )


def check_objects(context: DoctorContext) -> Iterator[Finding]:
    profile = context.profile
    core = f"/api/v1/namespaces/{context.namespace}"
    yield _check_object(context, "service account", f"{core}/serviceaccounts", profile.service_account, SETUP)
    if profile.store_secret:
        hint = explain_store_secret(profile.store_secret, context.namespace, context.store_url)
        yield _check_object(context, "store secret", f"{core}/secrets", profile.store_secret, hint)
    for name in profile.image_pull_secrets:
        hint = (
            f"kubectl create secret docker-registry {name} --namespace {context.namespace} "
            "--docker-server HOST --docker-username USER --docker-password TOKEN"
        )
        yield _check_object(context, "image pull secret", f"{core}/secrets", name, hint)
    if profile.data:
        hint = "make the PersistentVolumeClaim, or leave `data` out of the profile"
        yield _check_object(context, "data volume", f"{core}/persistentvolumeclaims", profile.data.claim, hint)
    if profile.priority_class:
        hint = "create the PriorityClass, or leave `priority_class` out of the profile"
        path = "/apis/scheduling.k8s.io/v1/priorityclasses"
        yield _check_object(context, "priority class", path, profile.priority_class, hint)
    for name in sorted({kind.pod_spec.get("runtimeClassName") or "" for kind in context.kinds} - {""}):
        hint = "have the GPU's runtime make it, or set `runtime_class_name: null` in the profile"
        yield _check_object(context, "runtime class", "/apis/node.k8s.io/v1/runtimeclasses", name, hint)


def check_jobs(context: DoctorContext) -> Iterator[Finding]:
    """Submit a Job of each kind as a dry run, so that everything that may refuse it is asked."""
    path = f"/apis/batch/v1/namespaces/{context.namespace}/jobs"
    for kind in context.kinds:
        check = f"Job: {kind.cell.framework} on {kind.place}"
        try:
            context.connection.request("create", path, query={"dryRun": "All"}, body=kind.body)
        except ApiError as error:
            # A quota or a webhook may answer the same, without the words of RBAC.
            if error.status == HTTPStatus.FORBIDDEN and " cannot create resource " in error.message:
                yield explain_unchecked(check, error)
            elif error.status == HTTPStatus.NOT_FOUND:
                message = f"not tried: {error.message}"
                yield Finding(check=check, state="warning", message=message, hint="fix the namespace first")
            else:
                hint = "the message names the field, the quota or the webhook that is in the way"
                yield Finding(check=check, state="failed", message=error.message, hint=hint)
        else:
            yield Finding(check=check, state="ok", message="the API server would take it")


def check_pods(context: DoctorContext) -> Iterator[Finding]:
    """Submit a pod of each kind of Job as a dry run: quotas, limits and policies judge and change pods, not Jobs.

    Only who may create pods can ask; a run needs no such right.
    """
    path = f"/api/v1/namespaces/{context.namespace}/pods"
    for kind in context.kinds:
        check = f"pod: {kind.cell.framework} on {kind.place}"
        template = json.loads(kind.body)["spec"]["template"]
        metadata = template["metadata"] | {"generateName": "doctor-"}
        body = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
        try:
            answer = context.connection.request("create", path, query={"dryRun": "All"}, body=body.encode())
            made = decode_answer(answer)
        except ApiError as error:
            if error.status == HTTPStatus.FORBIDDEN and " cannot create resource " in error.message:
                yield explain_unchecked("pods", error)
                return
            if error.status != HTTPStatus.NOT_FOUND and NO_ACCOUNT not in error.message:  # found above
                hint = "the message names the quota, the limit, the policy or the webhook that is in the way"
                yield Finding(check=check, state="failed", message=error.message, hint=hint)
            continue
        if changes := describe_pod_changes(template, made):
            message = f"a webhook or policy of the cluster changes it: {changes}"
            yield Finding(check=check, state="warning", message=message, hint=CHANGED)
        else:
            yield Finding(check=check, state="ok", message="the API server would take it as it is")


def check_orphaned_pods(context: DoctorContext) -> Iterator[Finding]:
    """Find pods of cells whose Job is gone: they take cores and memory, and nobody deletes them."""
    pods = find_orphaned_pods(context.connection, context.namespace, COMPONENT, POD_FIELDS)
    if pods:
        runs = sorted({pod.run_id for pod in pods})
        message = f"{name_pods(pods)}, of {join_some(runs, MAX_NAMED)}: their Jobs are gone, and nothing deletes them"
        hint = (
            f"wait for those that run, or: benchmatrix clean {runs[0]} --on {context.target.context} --namespace "
            f"{context.namespace} --force"
        )
        yield Finding(check="pods without a Job", state="warning", message=message, hint=hint)


def explain_store_secret(name: str, namespace: str, store_url: str | None) -> str:
    """Return how to make the Secret that cells read the store's credentials from; `store_url`: None if unknown."""
    scheme = (store_url or "").partition("://")[0]
    keys = SECRET_KEYS.get(scheme) or "; ".join(f"{known}://: {words}" for known, words in SECRET_KEYS.items())
    return f"kubectl create secret generic {name} --namespace {namespace}, with the keys of the store: {keys}"


def _check_object(context: DoctorContext, check: str, path: str, name: str, hint: str) -> Finding:
    try:
        found = find_object(context.connection, f"{path}/{name}")
    except ApiError as error:
        return explain_unchecked(check, error)
    if found is None:
        return Finding(check=check, state="failed", message=f"there is no {name}", hint=hint)
    return Finding(check=check, state="ok", message=f"{name} is there")


QUEUE, CLUSTER_QUEUE = "queue", "cluster queue"
INSTALLATION = "https://kueue.sigs.k8s.io/docs/installation/"


def check_queue(context: DoctorContext) -> Iterator[Finding]:
    queue = context.target.queue
    version = find_api_version(context.connection)
    if version is None:
        message = "the cluster has no Kueue: it does not know kueue.x-k8s.io"
        hint = f"install it ({INSTALLATION}), or leave --queue out"
        yield Finding(check=QUEUE, state="failed", message=message, hint=hint)
        return
    found = find_object(context.connection, f"/apis/{version}/namespaces/{context.namespace}/localqueues/{queue}")
    if found is None:
        message = f"namespace {context.namespace} has no LocalQueue {queue}"
        hint = "have an administrator make one (docs/kubernetes.md has an example), or name another with --queue"
        yield Finding(check=QUEUE, state="failed", message=message, hint=hint)
        return
    name = found["spec"]["clusterQueue"]
    if inactive := read_inactivity(found):
        message = f"LocalQueue {queue} of ClusterQueue {name}: {inactive}"
        hint = "no Job of it starts until its owner has put that right"
        yield Finding(check=QUEUE, state="failed", message=message, hint=hint)
    else:
        yield Finding(check=QUEUE, state="ok", message=f"LocalQueue {queue} of ClusterQueue {name} ({version})")
    yield from _check_cluster_queue(context, version, name)


def _check_cluster_queue(context: DoctorContext, version: str, name: str) -> Iterator[Finding]:
    try:
        found = find_object(context.connection, f"/apis/{version}/clusterqueues/{name}")
    except ApiError as error:
        yield explain_unchecked(CLUSTER_QUEUE, error)
        return
    if found is None:
        message, hint = f"there is no ClusterQueue {name}", "create it, or have the LocalQueue name another"
        yield Finding(check=CLUSTER_QUEUE, state="failed", message=message, hint=hint)
        return
    if inactive := read_inactivity(found):
        hint = "no Job of it starts until its owner has put that right"
        yield Finding(check=CLUSTER_QUEUE, state="failed", message=f"{name}: {inactive}", hint=hint)
    else:
        yield Finding(check=CLUSTER_QUEUE, state="ok", message=f"{name} is active")
    for kind in {kind.place: kind for kind in context.kinds}.values():
        yield _check_quota(kind, found)


def _check_quota(kind: CellKind, cluster_queue: Mapping[str, Any]) -> Finding:
    """Compare what one cell requests with the quota that the queue has in all its flavours together."""
    quotas: defaultdict[str, Decimal] = defaultdict(Decimal)
    for group in cluster_queue["spec"].get("resourceGroups") or ():
        for resource in (resource for flavor in group["flavors"] for resource in flavor["resources"]):
            quotas[resource["name"]] += read_quantity(resource["nominalQuota"])
    requests = {name: amount for name, amount in sum_requests(kind.pod_spec).items() if amount}
    uncovered = tuple(f"it covers no {name}" for name in requests if name not in quotas)
    small = tuple(
        f"{name}: {format_amount(name, amount)} wanted, {format_amount(name, quotas[name])} is its quota"
        for name, amount in requests.items()
        if name in quotas and quotas[name] < amount
    )
    check, name = f"queue for cells on {kind.place}", cluster_queue["metadata"]["name"]
    if not uncovered and not small:
        message = f"ClusterQueue {name} has the quota for one; labels and taints of its flavours are not compared"
        return Finding(check=check, state="ok", message=message)
    in_cohort = bool(cluster_queue["spec"].get("cohortName") or cluster_queue["spec"].get("cohort"))  # v1beta2, v1beta1
    if in_cohort and not uncovered:
        message = f"ClusterQueue {name} admits one only with quota that its cohort lends"
        hint = "see that the cohort has so much; raise the nominalQuota where such cells must not depend on it"
        return Finding(check=check, state="warning", message=message, hint=hint, details=small)
    message = f"ClusterQueue {name} never admits one"
    hint = "add what is missing to its resourceGroups: a resource, or quota"
    return Finding(check=check, state="failed", message=message, hint=hint, details=(*uncovered, *small))


ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Variables that lead S3 clients elsewhere than to Amazon, the first one first
(https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html)."""
CELLS_STORE = "store of the cells"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def check_store(url: str | None, cells_environment: Mapping[str, str]) -> Finding:
    """Check whether this machine can write to the store; one in a directory fails, as a cluster's cells do not see it.

    `url`: None if no store was given. `cells_environment`: the environment variables that the profile gives to cells.
    """
    if url is None:
        message = "not checked: no --store was given"
        return Finding(check="store", state="warning", message=message, hint=f"add --store: {BUCKET_URLS}")
    if url.startswith("file:"):
        message = f"{url}: the cells on a cluster do not see this machine's directories"
        return Finding(check="store", state="failed", message=message, hint=f"name a bucket, {BUCKET_URLS}")
    try:
        store = Store.open(url)
        store.check_writable()
    except StoreError as error:
        message, _, hint = str(error).partition("; ")
        hint = "; ".join(filter(None, (hint, _name_cells_server(url, os.environ, cells_environment))))
        return Finding(check="store", state="failed", message=message, hint=hint)
    return Finding(check="store", state="ok", message=f"{url} can be written from here; cells have their own identity")


def _name_cells_server(url: str, shell: Mapping[str, str], cells_environment: Mapping[str, str]) -> str:
    """Return how to lead this shell to the S3 server that only the cells are told of; empty if that is not so."""
    given = next((name for name in ENDPOINTS if cells_environment.get(name)), None)
    if given is None or not url.startswith("s3:") or any(shell.get(name) for name in ENDPOINTS):
        return ""
    return (
        f"the cells find the server by {given}={cells_environment[given]}, as the profile says, and this shell does "
        f"not: export {given}, with an address that this machine reaches"
    )


def check_cells_endpoint(context: DoctorContext, url: str | None) -> Finding | None:
    """Find whether the cells know of an S3 server that this shell names; None if nothing speaks against it."""
    if url is None or not url.startswith("s3:"):
        return None
    if compare_endpoints(os.environ, context.profile, ()) is None:
        return None  # without the right to read the Secret
    try:
        return compare_endpoints(os.environ, context.profile, _list_secret_keys(context))
    except ApiError as error:
        return explain_unchecked(CELLS_STORE, error)


def compare_endpoints(shell: Mapping[str, str], profile: Profile, secret_keys: Collection[str]) -> Finding | None:
    """Return what is wrong with the cells' endpoint, given this shell's variables and the keys of the store's Secret.

    The URLs themselves may differ: a server can have one address inside the cluster and another one outside.
    """
    own = next((shell[name] for name in ENDPOINTS if shell.get(name)), None)
    given = next((profile.environment[name] for name in ENDPOINTS if profile.environment.get(name)), None)
    if own is not None and given is None and not set(ENDPOINTS) & set(secret_keys):
        message = (
            f"this shell finds the S3 server by AWS_ENDPOINT_URL={hide_credentials(own)}, and the cells would ask "
            "Amazon's"
        )
        hint = "write `environment: {AWS_ENDPOINT_URL: URL}` in the profile, with an address that pods reach"
        return Finding(check=CELLS_STORE, state="failed", message=message, hint=hint)
    if given is not None and urlsplit(given).hostname in LOOPBACK:
        message = (
            f"AWS_ENDPOINT_URL={hide_credentials(given)} in the profile's `environment` is the pod itself to each cell"
        )
        hint = "name an address of the server that pods reach"
        return Finding(check=CELLS_STORE, state="failed", message=message, hint=hint)
    return None


def _list_secret_keys(context: DoctorContext) -> Collection[str]:
    name = context.profile.store_secret
    path = f"/api/v1/namespaces/{context.namespace}/secrets/{name}"
    secret = find_object(context.connection, path) if name else None
    return (secret or {}).get("data") or {}


def examine(context: DoctorContext, store_url: str | None) -> Iterator[Finding]:
    """Check each precondition of a run, and yield the findings; nothing more is checked if no API server answers."""
    yield from context.findings
    try:
        yield check_version(context)
    except ApiError as error:
        yield explain_unreachable(error)
    else:
        yield from _examine_cluster(context)
        yield from _guard("store of the cells", lambda: filter(None, [check_cells_endpoint(context, store_url)]))
    yield check_store(store_url, context.profile.environment)


def _examine_cluster(context: DoctorContext) -> Iterator[Finding]:
    yield from _guard("clock", lambda: [check_clock(context)])
    yield from _guard("permissions", lambda: check_permissions(context))
    yield from _guard("namespace", lambda: [check_namespace(context)])
    yield from _guard("objects", lambda: check_objects(context))
    yield from _guard("Jobs", lambda: check_jobs(context))
    yield from _guard("pods", lambda: check_pods(context))
    yield from _guard("pods without a Job", lambda: check_orphaned_pods(context))
    yield from _guard("nodes", lambda: _examine_nodes(context))
    yield from _guard("claims", lambda: check_claims(context))
    if context.target.queue is not None:
        yield from _guard("queue", lambda: check_queue(context))


def _examine_nodes(context: DoctorContext) -> Iterator[Finding]:
    inventory = ClusterInventory.take(context.connection)
    yield from check_nodes(context, inventory)
    yield from check_images(context, inventory)
    yield from check_gpus(context, inventory)


def _guard(check: str, examine_part: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield the findings of a part; what the API server refuses to show is a finding as well."""
    try:
        yield from examine_part()
    except ApiError as error:
        yield explain_unchecked(check, error)
