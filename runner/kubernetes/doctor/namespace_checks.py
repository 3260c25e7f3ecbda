"""Checks of the namespace: that it exists, has all objects that cells name, and takes their Jobs."""

import base64
import json
from collections.abc import Iterator
from http import HTTPStatus

from bench.errors import UserError
from bench.signatures.keys import parse_signing_key
from collector.word_lists import join_some
from runner.kubernetes.answers import decode_object
from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.changed_pods import describe_pod_changes
from runner.kubernetes.cleanup import MAX_NAMED, find_orphaned_pods, name_pods
from runner.kubernetes.doctor.context import DoctorContext
from runner.kubernetes.doctor.findings import Finding, explain_unchecked, find_object
from runner.kubernetes.rendering.job_name import COMPONENT
from runner.kubernetes.rendering.job_template import SIGNING_KEY
from runner.kubernetes.session import POD_FIELDS

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
    """Find whether the namespace is there, and what its Pod Security level is."""
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
    """Find whether everything is there that cells name."""
    profile = context.profile
    core = f"/api/v1/namespaces/{context.namespace}"
    yield _check_object(context, "service account", f"{core}/serviceaccounts", profile.service_account, SETUP)
    if profile.store_secret:
        hint = explain_store_secret(profile.store_secret, context.namespace, context.store_url)
        yield _check_object(context, "store secret", f"{core}/secrets", profile.store_secret, hint)
    if profile.signing_secret:
        yield _check_signing_secret(context, f"{core}/secrets/{profile.signing_secret}", profile.signing_secret)
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
            made = decode_object(answer, "pods", f"its answer to {path}")
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


def _check_signing_secret(context: DoctorContext, path: str, name: str) -> Finding:
    """Find whether the Secret has a signing key; of the key, its name alone is shown."""
    check = "signing secret"
    hint = f"kubectl create secret generic {name} --namespace {context.namespace} --from-file={SIGNING_KEY}=FILE"
    try:
        found = find_object(context.connection, path)
    except ApiError as error:
        return explain_unchecked(check, error)
    if found is None:
        return Finding(check=check, state="failed", message=f"there is no {name}", hint=hint)
    text = (found.get("data") or {}).get(SIGNING_KEY)
    if not isinstance(text, str):
        return Finding(check=check, state="failed", message=f"{name} has no {SIGNING_KEY}", hint=hint)
    try:
        key = parse_signing_key(base64.b64decode(text), f"{name}/{SIGNING_KEY}")
    except (UserError, ValueError) as error:
        message = str(error) if isinstance(error, UserError) else f"{name}/{SIGNING_KEY}: no Base64"
        return Finding(check=check, state="failed", message=message, hint=hint)
    return Finding(check=check, state="ok", message=f"{name} has the key {key.public.key_id}")


def _check_object(context: DoctorContext, check: str, path: str, name: str, hint: str) -> Finding:
    try:
        found = find_object(context.connection, f"{path}/{name}")
    except ApiError as error:
        return explain_unchecked(check, error)
    if found is None:
        return Finding(check=check, state="failed", message=f"there is no {name}", hint=hint)
    return Finding(check=check, state="ok", message=f"{name} is there")
