"""What runs need in their namespace: the rights that their runner asks for, and what `setup` applies to a cluster.

The Roles of `setup` are rendered from the rights, and `doctor` asks about them.
"""

import base64
import json
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.schema import Run
from collector.files import replace_text
from runner.kubernetes.connection import (
    ApiError,
    BusyError,
    Connection,
    JsonObject,
    decode_answer,
    is_unauthorized,
    to_user_error,
)
from runner.kubernetes.names import JobKey
from runner.kubernetes.rendering import JobRenderer, compute_fingerprint, render_manifests
from runner.matrix import order_repeats
from runner.profiles import IN_CLUSTER
from runner.profiles.model import Profile


@dataclass(frozen=True)
class Permission:
    """Verbs on one resource, in the namespace of the run unless it has none."""

    group: str
    """API group; empty: the core's."""
    resource: str
    verbs: tuple[str, ...]
    purpose: str
    """What the runner does with them."""


RUN_PERMISSIONS = (
    Permission(
        "batch",
        "jobs",
        ("create", "list", "watch", "delete", "deletecollection"),
        "submit the cells, follow them, delete those that cannot start or are recorded",
    ),
    Permission("", "pods", ("list", "watch"), "explain why a cell waits or how it died"),
    Permission("", "pods/log", ("get",), "take the record of a cell that could not reach the store"),
    Permission("", "events", ("list",), "explain why a Job has no pod"),
)
CLEANUP_PERMISSIONS = (Permission("", "pods", ("delete",), "delete pods whose Job is gone"),)
"""What `benchmatrix clean` needs on top of the permissions of a run."""
CANCEL_PERMISSIONS = (Permission("batch", "jobs", ("list", "delete"), "delete the Jobs"),)
NODE_PERMISSION = Permission(
    "",
    "nodes",
    ("get", "list"),
    "record the machine type, zone and kubelet of every result, and count the cells that fit on the nodes",
)
"""What a run can do without: it asks for each node once, and lists the nodes every two minutes.

Nodes are in no namespace, so that no Role can allow it."""
QUEUE_PERMISSIONS = (
    Permission("kueue.x-k8s.io", "workloads", ("list",), "say why Kueue has not started a Job"),
    Permission("kueue.x-k8s.io", "localqueues", ("get",), "say whether a queue is there and active"),
)
"""What a run with a queue asks for and can do without."""


# Whether the user may do that: asked first, so that a command is refused before it has changed anything.

UNKNOWN_USER = "a user that it does not name"
_NO_REVIEW = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
"""What a cluster answers that lets this user ask nothing about its rights."""


def describe_missing(connection: Connection, permissions: Iterable[Permission], namespace: str) -> str:
    """Return in words what of the permissions the user lacks. `namespace`: empty: in all of the cluster."""
    texts = []
    for one in permissions:
        resource, _, subresource = one.resource.partition("/")
        attributes = {"namespace": namespace, "group": one.group, "resource": resource, "subresource": subresource}
        refused = []
        for verb in one.verbs:
            spec = {"resourceAttributes": attributes | {"verb": verb}}
            review = _review(connection, "authorization.k8s.io/v1", "SelfSubjectAccessReview", spec)
            refused += [] if review["status"].get("allowed") else [verb]
        if refused:
            kind = ".".join(filter(None, (one.resource, one.group)))
            texts.append(f"{', '.join(refused)} {kind} (to {one.purpose})")
    return "; ".join(texts)


def name_self(connection: Connection) -> str:
    try:
        review = _review(connection, "authentication.k8s.io/v1", "SelfSubjectReview", {})
    except ApiError as error:
        if error.status not in _NO_REVIEW:
            raise
        return UNKNOWN_USER
    return str(review["status"]["userInfo"]["username"])


def _review(connection: Connection, version: str, kind: str, spec: JsonObject) -> JsonObject:
    body = json.dumps({"apiVersion": version, "kind": kind} | ({"spec": spec} if spec else {})).encode()
    return decode_answer(connection.request("create", f"/apis/{version}/{kind.lower()}s", body=body))


def check_permissions(connection: Connection, namespace: str, permissions: Iterable[Permission], what: str) -> None:
    """Raise UserError if it is known that the user may not do all that `what` needs in a namespace."""
    try:
        missing = describe_missing(connection, permissions, namespace)
        user = name_self(connection) if missing else ""
    except ApiError as error:
        if error.status not in _NO_REVIEW:
            raise to_user_error(error, connection.context) from error
        return
    if missing:
        is_in_cluster = connection.context == IN_CLUSTER
        raise UserError(
            f"--on {connection.context}: {user} lacks rights in namespace {namespace} that {what} needs: {missing}. "
            f"Nothing was changed; {'upgrade the release of the chart, or ' if is_in_cluster else ''}have an "
            "administrator of the cluster run `benchmatrix setup --on "
            f"{'CONTEXT' if is_in_cluster else connection.context} --namespace {namespace} --user "
            f"{'NAME' if user == UNKNOWN_USER else user}`, which grants them"
        )


RUNNER_ACCOUNT = "benchmatrix-runner"
STORE_PART = "s3"
STORE_NAME = "benchmatrix-store"
STORE_IMAGE = "rclone/rclone:1.75.2"
STORE_BUCKET = "benchmatrix"
STORE_NODE_PORT = 30900
"""Equals `hostPort` in manifests/kind.yaml."""
STORE_ENDPOINT = f"http://{STORE_NAME}:9000"
"""The address at which cells reach it."""

Manifest = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SetupTemplate:
    """What is set up for the runs of a profile."""

    profile: Profile
    users: Sequence[str] = ()
    """Users of the cluster who may run a matrix, besides the service account of a runner in the cluster."""
    has_store: bool = False
    """With an S3 server in the cluster, for trying only."""
    has_queue: bool = False
    """With the permissions to say why Kueue has not started a Job. Whoever applies them must have them."""

    def __post_init__(self) -> None:
        if self.has_store and self.profile.store_secret is None:
            raise UserError(
                f"profile {self.profile.name}: store_secret: is null; name the Secret that the keys of the S3 server "
                "in the cluster go to, or leave --s3 out"
            )

    def render(self) -> dict[str, list[Manifest]]:
        """Return the manifests by the name of their template, in the order to apply them, except the Secret."""
        parts = {
            "namespace": render_manifests("namespace.yaml.j2", profile=self.profile),
            "rbac": render_manifests(
                "rbac.yaml.j2",
                profile=self.profile,
                runner_account=RUNNER_ACCOUNT,
                permissions=(*RUN_PERMISSIONS, *CLEANUP_PERMISSIONS, *(QUEUE_PERMISSIONS if self.has_queue else ())),
                users=self.users,
            ),
            "claim-templates": list(self._render_claim_templates()),
        }
        if self.has_store:
            parts[STORE_PART] = render_manifests(
                "s3.yaml.j2", profile=self.profile, image=STORE_IMAGE, node_port=STORE_NODE_PORT
            )
        return {name: manifests for name, manifests in parts.items() if manifests}

    def render_store_secret(self, access_key: str, secret_key: str) -> Manifest:
        """Return the Secret with the keys of the S3 server in the cluster. A comma in a key is not possible."""
        (secret,) = render_manifests(
            "s3-secret.yaml.j2",
            profile=self.profile,
            access_key=access_key,
            secret_key=secret_key,
            endpoint_url=STORE_ENDPOINT,
        )
        return secret

    def _render_claim_templates(self) -> Iterator[Manifest]:
        gpu = self.profile.gpu
        if gpu is not None and gpu.request == "claim":
            for num_gpus in range(1, gpu.max_per_node + 1):
                name = gpu.name_claim_template(num_gpus)
                yield from render_manifests(
                    "claim-template.yaml.j2", profile=self.profile, name=name, num_gpus=num_gpus
                )


def dump_manifests(manifests: Sequence[Manifest]) -> str:
    """Return manifests as one JSON object that `kubectl apply -f` takes."""
    one = manifests[0] if len(manifests) == 1 else {"apiVersion": "v1", "kind": "List", "items": manifests}
    return json.dumps(one, indent=2, ensure_ascii=False)


SETUP_FOLDER = "setup"


def write_manifests(folder: Path, run: Run, profile: Profile, store_url: str, queue: str | None) -> None:
    """Write one JSON file per Job and, in a folder below, the set-up. UserError if other manifests are there."""
    parts = SetupTemplate(profile=profile).render()
    files = {f"{SETUP_FOLDER}/{i}-{name}.json": dump_manifests(parts[name]) for i, name in enumerate(parts, start=1)}
    files |= _render_jobs(run, profile, store_url, queue)
    found = {str(path.relative_to(folder)) for path in (*folder.glob("*.json"), *folder.glob(f"{SETUP_FOLDER}/*.json"))}
    if others := sorted(found - files.keys()):  # `kubectl apply -f` would apply them too
        raise UserError(
            f"--manifests {folder}: holds other manifests, such as {others[0]}; remove them or name another folder"
        )
    try:
        (folder / SETUP_FOLDER).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--manifests {folder}: {error.strerror or error}; name another folder") from error
    for name, text in files.items():
        replace_text(folder / name, f"{text}\n")


def _render_jobs(run: Run, profile: Profile, store_url: str, queue: str | None) -> dict[str, str]:
    own = profile.add_variables(run.environment)
    renderer = JobRenderer(profile=own, store_url=store_url, git_revision=run.git_revision, queue=queue)
    fingerprint = compute_fingerprint(run, profile, store_url)
    files = {}
    for repeat in order_repeats(run.cells, run.order_seed):
        key = JobKey(
            run_id=run.run_id,
            cell_id=repeat.planned.cell.cell_id,
            number=repeat.number,
            retry_round=0,
            fingerprint=fingerprint,
        )
        files[f"{key.job_name}.json"] = dump_manifests([json.loads(renderer.render(repeat.planned, key))])
    return files


FIELD_MANAGER = "benchmatrix"
MANAGED_BY = "app.kubernetes.io/managed-by"
STORE_SECONDS = 300.0
"""For pulling the image and starting."""


@dataclass(frozen=True, kw_only=True)
class Installer:
    """Applies a set-up to a cluster; may be repeated."""

    connection: Connection
    template: SetupTemplate

    def install(self) -> list[str]:
        """Apply everything; return what became of each object. Raise UserError if the API server refuses."""
        done = []
        for part, manifests in self.template.render().items():
            if part == STORE_PART:  # its pod waits for the keys
                done.append(self._keep_or_create_secret())
            done += [self._apply(one) for one in manifests]
        return done

    def await_store(self) -> dict[str, str]:
        """Wait until the S3 server in a kind cluster serves; return the variables that lead this machine to it.

        A shell takes them, so they are those alone that a set-up writes into the Secret. UserError if it does not serve
        within STORE_SECONDS, or the Secret cannot be read.
        """
        profile, deadline = self.template.profile, time.monotonic() + STORE_SECONDS
        path = f"/apis/apps/v1/namespaces/{profile.namespace}/deployments/{STORE_NAME}"
        with self._explain(f"Deployment {STORE_NAME}"):
            while not self.connection.get_object(path).get("status", {}).get("availableReplicas"):
                if time.monotonic() > deadline:
                    label = f"app.kubernetes.io/name={STORE_NAME}"
                    raise UserError(
                        f"--on {self.connection.context}: the S3 server in the cluster does not become ready; "
                        f"`kubectl describe pod --namespace {profile.namespace} --selector {label}` shows why"
                    )
                time.sleep(1.0)
        with self._explain(f"Secret {profile.store_secret}"):
            path = f"/api/v1/namespaces/{profile.namespace}/secrets/{profile.store_secret}"
            data = self.connection.get_object(path).get("data", {})
        known = self.template.render_store_secret("", "")["stringData"]
        found = {key: base64.b64decode(data[key]).decode() for key in known if key in data}
        if len(found) < len(known):
            raise UserError(
                f"--on {self.connection.context}: Secret {profile.store_secret} in namespace {profile.namespace} lacks "
                f"{' and '.join(sorted(known - found.keys()))}: somebody else made it for something else; name another "
                "in `store_secret` of the profile, or delete it and give the command again"
            )
        return found | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{STORE_NODE_PORT}"}

    def _apply(self, manifest: Manifest) -> str:
        """Apply one object, server-side: the API server refuses to change a field that somebody else has set."""
        name, path = _describe(manifest), find_path(manifest)
        with self._explain(name):
            found = self.connection.find_object(path) if manifest["kind"] == "Namespace" else None
            if found and found["metadata"].get("labels", {}).get(MANAGED_BY) != FIELD_MANAGER:
                # Pods of others may need more than a namespace of ours allows.
                return f"{name} was created by somebody else and is left as it is"
            query, body = {"fieldManager": FIELD_MANAGER}, json.dumps(manifest).encode()
            kind = "application/apply-patch+yaml"
            self.connection.request("patch", path, query=query, body=body, content_type=kind)
        return f"{name} applied"

    def _keep_or_create_secret(self) -> str:
        secret = self.template.render_store_secret(secrets.token_hex(10).upper(), secrets.token_hex(20))
        name, path = _describe(secret), find_path(secret)
        with self._explain(name):
            if self.connection.find_object(path):
                return f"{name} exists already and is kept"
            self.connection.request("create", path.rpartition("/")[0], body=json.dumps(secret).encode())
        return f"{name} created, with new keys"

    @contextmanager
    def _explain(self, name: str) -> Iterator[None]:
        try:
            yield
        except ApiError as error:
            if isinstance(error, BusyError) or is_unauthorized(error) or not 400 <= error.status < 500:
                raise to_user_error(error, self.connection.context) from error
            hint = "have an administrator of the cluster run `benchmatrix setup`, or apply what --dry-run prints"
            if error.status == HTTPStatus.CONFLICT:
                hint = "somebody else made it or has changed it; give another --namespace, or delete it"
            elif error.status == HTTPStatus.NOT_FOUND and name.startswith("ResourceClaimTemplate"):
                hint = "the cluster has no resource.k8s.io/v1 (Kubernetes 1.34 or newer); write `gpu.request: limit`"
            elif error.status != HTTPStatus.FORBIDDEN:
                hint = "fix what the message names; `benchmatrix doctor` says what else is missing"
            raise UserError(f"--on {self.connection.context}: {name}: {error.message}; {hint}") from error


def find_path(manifest: Manifest) -> str:
    version, kind, metadata = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    within = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{base}{within}/{kind.lower()}s/{metadata['name']}"


def _describe(manifest: Manifest) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"
