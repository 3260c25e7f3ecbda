"""Apply to a cluster what runs need in their namespace."""

import base64
import json
import secrets
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal

from bench.errors import UserError
from collector.word_lists import join_some
from runner.kubernetes.api_errors import (
    INVALID_ANSWER,
    WRONG_SERVER,
    ApiError,
    BusyError,
    is_unauthorized,
    to_user_error,
)
from runner.kubernetes.connection import Connection
from runner.kubernetes.kueue import find_api_version
from runner.kubernetes.rendering.queue_template import QueueTemplate
from runner.kubernetes.rendering.setup_template import STORE_NAME, STORE_NODE_PORT, STORE_PART, Manifest, SetupTemplate

FIELD_MANAGER = "benchmatrix"
MANAGED_BY = "app.kubernetes.io/managed-by"
QUEUE_PART = "queue"
MERGED_KINDS = ("Namespace", "ServiceAccount")
"""Kinds of which an object of others loses nothing: a namespace is left as it is, and what is applied to an account,
perhaps `default`, adds to it. Of the others a set-up replaces rules, quotas or pods."""
STORE_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
"""What a Secret must hold to lead to a store at all."""
MAX_NAMED = 5
STORE_SECONDS = 300.0
"""For pulling the image and starting."""
Outcome = Literal["applied", "created", "kept"]
# Plurals of the kinds in manifests/: what a path names them by.
_PLURALS = {
    "Namespace": "namespaces",
    "ServiceAccount": "serviceaccounts",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "Secret": "secrets",
    "Deployment": "deployments",
    "Service": "services",
    "ResourceFlavor": "resourceflavors",
    "ClusterQueue": "clusterqueues",
    "LocalQueue": "localqueues",
}


@dataclass(frozen=True, kw_only=True)
class InstalledObject:
    """What became of one object of a set-up."""

    kind: str
    name: str
    outcome: Outcome
    detail: str = ""

    def describe(self) -> str:
        """Return it in words: `Role runner applied`."""
        words = self.detail if self.outcome == "kept" else ", ".join(filter(None, [self.outcome, self.detail]))
        return f"{self.kind} {self.name} {words}"


@dataclass(frozen=True, kw_only=True)
class Installer:
    """Applies a set-up to a cluster; may be repeated."""

    connection: Connection
    template: SetupTemplate
    queue: QueueTemplate | None = None
    """A queue of Kueue to make as well."""

    def install(self) -> list[InstalledObject]:
        """Apply everything and return what became of each object. UserError if the API server refuses."""
        parts = self.template.render()
        if self.queue is not None:
            parts[QUEUE_PART] = self.queue.render(self._find_kueue())
        unknown = {find_path(one) for part in parts.values() for one in part if not self._is_free_to_apply(one)}
        done = []
        for part, manifests in parts.items():
            if part == STORE_PART:  # its pod waits for the keys
                done.append(self._keep_or_create_secret())
            done += [self._apply(one, force=find_path(one) not in unknown) for one in manifests]
        return done

    def await_store(self) -> None:
        """Wait until the S3 server in the cluster serves; UserError if it does not within STORE_SECONDS."""
        namespace = self.template.profile.namespace
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{STORE_NAME}"
        deadline = time.monotonic() + STORE_SECONDS
        while not self._get(path, f"Deployment {STORE_NAME}").get("status", {}).get("availableReplicas"):
            if time.monotonic() > deadline:
                raise UserError(
                    f"--on {self.connection.context}: the S3 server in the cluster does not become ready; "
                    f"`kubectl describe pod --namespace {namespace} --selector app.kubernetes.io/name={STORE_NAME}` "
                    "shows why"
                )
            time.sleep(1.0)

    def read_store_environment(self) -> tuple[dict[str, str], str]:
        """Return the variables that lead a runner on this machine to the S3 server in a kind cluster.

        A shell takes them, and somebody else may have made the Secret: so they are those that a set-up writes there.
        Beside them is in words which other keys are left out; empty: none is. UserError if the Secret cannot be read
        or holds no keys of a store.
        """
        namespace, name = self.template.profile.namespace, self.template.profile.store_secret
        data = self._get(f"/api/v1/namespaces/{namespace}/secrets/{name}", f"Secret {name}").get("data", {})
        known = self.template.render_store_secret("", "")["stringData"]
        found = {key: base64.b64decode(data[key]).decode() for key in known if key in data}
        if lacking := [key for key in STORE_KEYS if not found.get(key)]:
            raise UserError(
                f"--on {self.connection.context}: Secret {name} in namespace {namespace} has no "
                f"{' and no '.join(lacking)}: somebody else made it for something else; name another in "
                "`store_secret` of the profile, or delete it and give the command again"
            )
        others = sorted(data.keys() - known.keys())
        left_out = (
            f"Secret {name}: not printed, as no set-up writes them: {join_some(others, MAX_NAMED)}" if others else ""
        )
        return found | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{STORE_NODE_PORT}"}, left_out

    def _find_kueue(self) -> str:
        try:
            version = find_api_version(self.connection)
        except ApiError as error:
            raise self._explain(error, "Kueue") from error
        if version is None:
            raise UserError(
                f"--on {self.connection.context}: --queue: the cluster has no Kueue; install it "
                "(https://kueue.sigs.k8s.io/docs/installation/), or leave --queue out"
            )
        return version

    def _apply(self, manifest: Manifest, *, force: bool) -> InstalledObject:
        """Apply one object, server-side: fields that it does not name stay as others have set them.

        Without `force`, the API server refuses to change a field that others have set.
        """
        name = _describe(manifest)
        if manifest["kind"] == "Namespace" and self._was_created_by_others(manifest):
            return _tell(manifest, "kept", "was created by somebody else and is left as it is")
        query = {"fieldManager": FIELD_MANAGER, "force": str(force).lower()}
        try:
            self.connection.request(
                "patch",
                find_path(manifest),
                query=query,
                body=json.dumps(manifest).encode(),
                content_type="application/apply-patch+yaml",
            )
        except ApiError as error:
            raise self._explain(error, name) from error
        return _tell(manifest, "applied")

    def _was_created_by_others(self, manifest: Manifest) -> bool:
        """Return whether others created the namespace: their pods may need more than we would allow."""
        found = self._find_existing(manifest)
        return _read_maker(found) != FIELD_MANAGER if found else False

    def _is_free_to_apply(self, manifest: Manifest) -> bool:
        """Return whether it is certain that no object of others loses what it says; UserError if one would.

        Not certain is it of an object that the user may not read.
        """
        if manifest["kind"] in MERGED_KINDS:
            return True
        found = self._find_existing(manifest)
        if not found:
            return found is not None
        foreign = f"{MANAGED_BY} is {_read_maker(found) or 'not set'}" if _read_maker(found) != FIELD_MANAGER else ""
        if manifest["kind"] == "ClusterQueue" and _find_namespace(found) != _find_namespace(manifest):
            foreign = f"its namespaceSelector names {_find_namespace(found) or 'no namespace'}"
        if foreign:
            raise UserError(
                f"--on {self.connection.context}: {_describe(manifest)}: is there already, and this tool did not make "
                f"it for namespace {self.template.profile.namespace} ({foreign}); nothing was changed; "
                f"{_advise(manifest)}"
            )
        return True

    def _find_existing(self, manifest: Manifest) -> Manifest | None:
        """Return the object that has the name; empty where there is none, None where the user may not read it."""
        try:
            return self.connection.get_object(find_path(manifest))
        except ApiError as error:
            if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                return {} if error.status == HTTPStatus.NOT_FOUND else None
            raise self._explain(error, _describe(manifest)) from error

    def _keep_or_create_secret(self) -> InstalledObject:
        secret = self.template.render_store_secret(secrets.token_hex(10).upper(), secrets.token_hex(20))
        name = _describe(secret)
        path = find_path(secret).rpartition("/")[0]
        try:
            self.connection.request("create", path, body=json.dumps(secret).encode())
        except ApiError as error:
            if error.status == HTTPStatus.CONFLICT:
                return _tell(secret, "kept", "exists already and is kept")
            raise self._explain(error, name) from error
        return _tell(secret, "created", "with new keys")

    def _get(self, path: str, name: str) -> Manifest:
        try:
            return self.connection.get_object(path)
        except ApiError as error:
            raise self._explain(error, name) from error

    def _explain(self, error: ApiError, name: str) -> UserError:
        if isinstance(error, BusyError) or is_unauthorized(error) or error.reason in (INVALID_ANSWER, WRONG_SERVER):
            return to_user_error(error, self.connection.context)
        hint = "have an administrator of the cluster run `benchmatrix setup`, or apply what --dry-run prints"
        if error.status == HTTPStatus.NOT_FOUND and name.startswith("ResourceClaimTemplate"):
            hint = "the cluster has no resource.k8s.io/v1 (Kubernetes 1.34 or newer); write `gpu.request: limit`"
        elif error.status != HTTPStatus.FORBIDDEN:
            hint = "fix what the message names; `benchmatrix doctor` says what else is missing"
        return UserError(f"--on {self.connection.context}: {name}: {error.message}; {hint}")


def find_path(manifest: Manifest) -> str:
    """Return where the API keeps an object."""
    version, kind, metadata = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    within = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{base}{within}/{_PLURALS[kind]}/{metadata['name']}"


def _read_maker(found: Manifest) -> str:
    return str(found["metadata"].get("labels", {}).get(MANAGED_BY, ""))


def _find_namespace(queue: Manifest) -> str:
    """Return the namespace that a ClusterQueue is for: its name, NAMESPACE-QUEUE, can be that of two."""
    selector = queue["spec"].get("namespaceSelector", {})
    return str(selector.get("matchLabels", {}).get("kubernetes.io/metadata.name", ""))


def _advise(manifest: Manifest) -> str:
    if manifest["kind"] in ("ClusterQueue", "LocalQueue"):
        return "give the queue another name with --queue, or leave --quota out and have an administrator make it"
    return f"give another --namespace, delete it, or label it {MANAGED_BY}={FIELD_MANAGER} to have it replaced"


def _tell(manifest: Manifest, outcome: Outcome, detail: str = "") -> InstalledObject:
    return InstalledObject(kind=manifest["kind"], name=manifest["metadata"]["name"], outcome=outcome, detail=detail)


def _describe(manifest: Manifest) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"
