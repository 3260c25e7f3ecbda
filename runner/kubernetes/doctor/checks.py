"""A site in, findings about its API server and its namespace out: what a run needs there besides nodes."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from bench.store import Store, StoreError
from runner.kubernetes.connection import FORBIDDEN, NOT_FOUND, UNAUTHORIZED, ApiError
from runner.kubernetes.credentials import IN_CLUSTER
from runner.kubernetes.doctor.context import DoctorContext
from runner.kubernetes.doctor.findings import Finding, FindingState, explain_unchecked, find_object
from runner.kubernetes.permissions import CLEANUP_PERMISSIONS, RUN_PERMISSIONS, Permission

API_SERVER, CLOCK = "API server", "clock"
MIN_VERSION = (1, 29)
"""The first that heeds `podReplacementPolicy` of a Job unasked: before it, two attempts may run at once.
https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/ (JobPodReplacementPolicy)"""
SKEW_SECONDS = 5.0
"""More than a request's way and the server's whole seconds explain."""
MAX_SKEW_SECONDS = 900.0
"""S3 refuses signatures that are off by more: RequestTimeTooSkewed,
https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html"""
POD_SECURITY = "pod-security.kubernetes.io/enforce"
SETUP = "`benchmatrix setup` makes it"


def check_version(site: DoctorContext) -> Finding:
    """Find the API server's version, and as whom it takes us; ApiError where it does not answer."""
    version = site.connection.get_object("/version")
    user = _review_self(site)[0]
    number = int(version["major"]), int("".join(filter(str.isdigit, version["minor"])))
    message = f"{version['gitVersion']}, where you are {user}"
    if number < MIN_VERSION:
        hint = f"Jobs need {'.'.join(map(str, MIN_VERSION))} or newer, lest two attempts at a cell run at once"
        return Finding(check=API_SERVER, state="failed", message=message, hint=hint)
    return Finding(check=API_SERVER, state="ok", message=message)


def explain_unreachable(error: ApiError) -> Finding:
    """Return the finding about an API server that does not answer, or not us."""
    hint = "log in to the cluster again" if error.status == UNAUTHORIZED else "see that it runs, and the kubeconfig"
    return Finding(check=API_SERVER, state="failed", message=error.message, hint=hint)


def check_clock(site: DoctorContext) -> Finding:
    """Find how far this machine's clock is from the API server's."""
    before = datetime.now(UTC)
    created = _review_self(site)[1]
    if created is None:
        message = "not checked: the server does not tell its time"
        return Finding(check=CLOCK, state="warning", message=message, hint="compare the clocks yourself")
    return judge_clock(created, before=before, after=datetime.now(UTC))


def judge_clock(server_time: datetime, *, before: datetime, after: datetime) -> Finding:
    """Return the finding about a clock. `server_time`, in whole seconds, was taken between `before` and `after`."""
    skew = max(0.0, (server_time - after).total_seconds(), (before - server_time).total_seconds() - 1)
    message = f"{skew:.0f} s from the server's" if skew else "agrees with the server's"
    if skew <= SKEW_SECONDS:
        return Finding(check=CLOCK, state="ok", message=message)
    state: FindingState = "failed" if skew > MAX_SKEW_SECONDS else "warning"
    return Finding(check=CLOCK, state=state, message=message, hint="set this machine's clock, by NTP for one")


def check_permissions(site: DoctorContext) -> Iterator[Finding]:
    """Find whether we may do what the runner does; a run needs no housekeeping, so that is a warning at most."""
    for permission in RUN_PERMISSIONS:
        yield _check_permission(site, permission, f"permission: {permission.resource}", if_refused="failed")
    housekeeping = () if site.target.context == IN_CLUSTER else CLEANUP_PERMISSIONS  # people's, not a runner's
    for permission in housekeeping:
        check = f"permission: {permission.resource}, to cancel and clean"
        yield _check_permission(site, permission, check, if_refused="warning")


def check_namespace(site: DoctorContext) -> Finding:
    """Find whether the namespace is there, and what its Pod Security level is."""
    found = find_object(site.connection, f"/api/v1/namespaces/{site.namespace}")
    if found is None:
        message = f"there is no namespace {site.namespace}"
        return Finding(check="namespace", state="failed", message=message, hint=f"{SETUP}; or name one: --namespace")
    if found.get("status", {}).get("phase") == "Terminating":
        message = f"{site.namespace} is being deleted"
        return Finding(check="namespace", state="failed", message=message, hint=f"wait until it is gone; then {SETUP}")
    level = found["metadata"].get("labels", {}).get(POD_SECURITY)
    if level in ("restricted", "baseline"):
        return Finding(check="namespace", state="ok", message=f"{site.namespace}, Pod Security level {level}")
    return Finding(
        check="namespace",
        state="warning",
        message=f"{site.namespace} has {f'the Pod Security level {level}' if level else 'no Pod Security level'}",
        hint=f"cells meet `restricted`; to refuse other pods: kubectl label namespace {site.namespace} "
        f"{POD_SECURITY}=restricted",
    )


def check_objects(site: DoctorContext) -> Iterator[Finding]:
    """Find whether everything is there that cells name."""
    profile = site.profile
    core = f"/api/v1/namespaces/{site.namespace}"
    yield _check_object(site, "service account", f"{core}/serviceaccounts", profile.service_account, SETUP)
    if profile.store_secret:
        hint = f"kubectl create secret generic {profile.store_secret} with AWS_ACCESS_KEY_ID and the like"
        yield _check_object(site, "store secret", f"{core}/secrets", profile.store_secret, hint)
    for name in profile.image_pull_secrets:
        hint = f"kubectl create secret docker-registry {name}"
        yield _check_object(site, "image pull secret", f"{core}/secrets", name, hint)
    if profile.data:
        hint = "make the PersistentVolumeClaim, or leave `data` out of the profile"
        yield _check_object(site, "data volume", f"{core}/persistentvolumeclaims", profile.data.claim, hint)
    if profile.priority_class:
        hint = "make the PriorityClass, or leave `priority_class` out of the profile"
        path = "/apis/scheduling.k8s.io/v1/priorityclasses"
        yield _check_object(site, "priority class", path, profile.priority_class, hint)


def check_jobs(site: DoctorContext) -> Iterator[Finding]:
    """Have the API server look at a Job of each kind, as if it were submitted, with all that may refuse it."""
    path = f"/apis/batch/v1/namespaces/{site.namespace}/jobs"
    for kind in site.kinds:
        check = f"Job: {kind.cell.framework} on {kind.place}"
        try:
            site.connection.request("create", path, query={"dryRun": "All"}, body=kind.body)
        except ApiError as error:
            if error.status == FORBIDDEN and "exceeded quota" not in error.message:
                yield explain_unchecked(check, error)
            elif error.status == NOT_FOUND:
                message = f"not tried: {error.message}"
                yield Finding(check=check, state="warning", message=message, hint="mend the namespace first")
            else:
                hint = "the message names the field, the quota or the webhook that is in the way"
                yield Finding(check=check, state="failed", message=error.message, hint=hint)
        else:
            yield Finding(check=check, state="ok", message="the API server would take it")


def check_queue(site: DoctorContext) -> Finding:
    """Find whether Kueue is there, and the LocalQueue that Jobs are handed to takes them."""
    queue = site.target.queue
    group = find_object(site.connection, "/apis/kueue.x-k8s.io")
    if group is None:
        message = "the cluster has no Kueue: it does not know kueue.x-k8s.io"
        hint = "install it (https://kueue.sigs.k8s.io/docs/installation/), or leave --queue out"
        return Finding(check="queue", state="failed", message=message, hint=hint)
    version = group["preferredVersion"]["groupVersion"]
    found = find_object(site.connection, f"/apis/{version}/namespaces/{site.namespace}/localqueues/{queue}")
    if found is None:
        message = f"namespace {site.namespace} has no LocalQueue {queue}"
        return Finding(check="queue", state="failed", message=message, hint="make it, or name another with --queue")
    conditions = {item["type"]: item for item in (found.get("status") or {}).get("conditions") or ()}
    active = conditions.get("Active", {})
    if active.get("status") == "False":
        message = f"LocalQueue {queue} is not active: {active.get('message', '')}"
        return Finding(check="queue", state="failed", message=message, hint="mend its ClusterQueue")
    name = found.get("spec", {}).get("clusterQueue", "")
    return Finding(check="queue", state="ok", message=f"LocalQueue {queue} of ClusterQueue {name}")


def check_store(url: str | None) -> Finding:
    """Find whether the store can be written, from this machine."""
    if url is None:
        message = "not checked: no --store was given"
        return Finding(check="store", state="warning", message=message, hint="add --store s3://BUCKET/PREFIX")
    if url.startswith("file:"):
        message = f"{url}: the cells on a cluster do not see this machine's directories"
        return Finding(check="store", state="failed", message=message, hint="name a bucket, s3://BUCKET/PREFIX")
    try:
        Store.open(url).check_writable()
    except StoreError as error:
        message, _, hint = str(error).partition("; ")
        return Finding(check="store", state="failed", message=message, hint=hint)
    return Finding(check="store", state="ok", message=f"{url} can be written from here; cells have their own identity")


def _check_permission(site: DoctorContext, permission: Permission, check: str, if_refused: FindingState) -> Finding:
    refused = [verb for verb in permission.verbs if not _may(site, permission, verb)]
    if not refused:
        return Finding(check=check, state="ok", message=", ".join(permission.verbs))
    message = f"you may not {', '.join(refused)} {permission.resource} in namespace {site.namespace}"
    hint = f"needed to {permission.purpose}; `benchmatrix setup --user NAME` by an administrator grants it"
    return Finding(check=check, state=if_refused, message=message, hint=hint)


def _check_object(site: DoctorContext, check: str, path: str, name: str, hint: str) -> Finding:
    try:
        found = find_object(site.connection, f"{path}/{name}")
    except ApiError as error:
        return explain_unchecked(check, error)
    if found is None:
        return Finding(check=check, state="failed", message=f"there is no {name}", hint=hint)
    return Finding(check=check, state="ok", message=f"{name} is there")


def _may(site: DoctorContext, permission: Permission, verb: str) -> bool:
    attributes = {
        "namespace": site.namespace,
        "verb": verb,
        "group": permission.group,
        "resource": permission.resource,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = json.loads(site.connection.request("create", path, body=json.dumps(body).encode()))
    return bool(answer["status"]["allowed"])


def _review_self(site: DoctorContext) -> tuple[str, datetime | None]:
    """Return our name on the server and its time; None where it does not tell."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    try:
        review = json.loads(site.connection.request("create", path, body=json.dumps(body).encode()))
    except ApiError as error:
        if error.status not in (NOT_FOUND, FORBIDDEN):
            raise
        return "nobody it would name", None
    created = review["metadata"].get("creationTimestamp")
    return review["status"]["userInfo"]["username"], datetime.fromisoformat(created) if created else None
