"""Apply to a cluster what runs need in their namespace."""

import base64
import json
import secrets
import time
from dataclasses import dataclass
from http import HTTPStatus

from bench.errors import UserError
from runner.kubernetes.api_errors import ApiError, BusyError, is_unauthorized, to_user_error
from runner.kubernetes.connection import Connection
from runner.kubernetes.rendering.setup_template import STORE_NAME, STORE_NODE_PORT, STORE_PART, Manifest, SetupTemplate

FIELD_MANAGER = "benchmatrix"
MANAGED_BY = "app.kubernetes.io/managed-by"
MERGED_KINDS = ("Namespace", "ServiceAccount")
"""Kinds of which an object of others loses nothing: a namespace is left as it is, and what is applied to an account,
perhaps `default`, adds to it. Of the others a set-up replaces rules or pods."""
STORE_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
"""What a Secret must hold to lead to a store at all."""
STORE_SECONDS = 300.0
"""For pulling the image and starting."""


@dataclass(frozen=True, kw_only=True)
class Installer:
    """Applies a set-up to a cluster; may be repeated."""

    connection: Connection
    template: SetupTemplate

    def install(self) -> list[str]:
        """Apply everything and return what became of each object. UserError if the API server refuses."""
        parts = self.template.render()
        is_forced = {find_path(one): self._is_free_to_apply(one) for part in parts.values() for one in part}
        done = []
        for part, manifests in parts.items():
            if part == STORE_PART:  # its pod waits for the keys
                done.append(self._keep_or_create_secret())
            done += [self._apply(one, force=is_forced[find_path(one)]) for one in manifests]
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

    def read_store_environment(self) -> dict[str, str]:
        """Return the variables that lead a runner on this machine to the S3 server in a kind cluster.

        A shell takes them, so they are those alone that a set-up writes into the Secret. UserError if it cannot be
        read or holds no keys of a store.
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
        return found | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{STORE_NODE_PORT}"}

    def _apply(self, manifest: Manifest, *, force: bool) -> str:
        """Apply one object, server-side: fields that it does not name stay as others have set them.

        Without `force`, the API server refuses to change a field that others have set.
        """
        name = _describe(manifest)
        found = self._find_existing(manifest) if manifest["kind"] == "Namespace" else None
        if found and _read_maker(found) != FIELD_MANAGER:  # pods of others may need more than we would allow
            return f"{name} was created by somebody else and is left as it is"
        query = {"fieldManager": FIELD_MANAGER, "force": str(force).lower()}
        body, content_type = json.dumps(manifest).encode(), "application/apply-patch+yaml"
        try:
            self.connection.request("patch", find_path(manifest), query=query, body=body, content_type=content_type)
        except ApiError as error:
            raise self._explain(error, name) from error
        return f"{name} applied"

    def _is_free_to_apply(self, manifest: Manifest) -> bool:
        """Return whether it is certain that no object of others loses what it says; UserError if one would.

        Not certain is it of an object that the user may not read.
        """
        if manifest["kind"] in MERGED_KINDS:
            return True
        found = self._find_existing(manifest)
        if found and _read_maker(found) != FIELD_MANAGER:
            raise UserError(
                f"--on {self.connection.context}: {_describe(manifest)}: is there already, and this tool did not make "
                f"it ({MANAGED_BY} is {_read_maker(found) or 'not set'}); nothing was changed; give another "
                f"--namespace, delete it, or label it {MANAGED_BY}={FIELD_MANAGER} to have it replaced"
            )
        return found is not None

    def _find_existing(self, manifest: Manifest) -> Manifest | None:
        """Return the object that has the name; empty where there is none, None where the user may not read it."""
        try:
            return self.connection.get_object(find_path(manifest))
        except ApiError as error:
            if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                return {} if error.status == HTTPStatus.NOT_FOUND else None
            raise self._explain(error, _describe(manifest)) from error

    def _keep_or_create_secret(self) -> str:
        secret = self.template.render_store_secret(secrets.token_hex(10).upper(), secrets.token_hex(20))
        name, path = _describe(secret), find_path(secret).rpartition("/")[0]
        try:
            self.connection.request("create", path, body=json.dumps(secret).encode())
        except ApiError as error:
            if error.status == HTTPStatus.CONFLICT:
                return f"{name} exists already and is kept"
            raise self._explain(error, name) from error
        return f"{name} created, with new keys"

    def _get(self, path: str, name: str) -> Manifest:
        try:
            return self.connection.get_object(path)
        except ApiError as error:
            raise self._explain(error, name) from error

    def _explain(self, error: ApiError, name: str) -> UserError:
        if isinstance(error, BusyError) or is_unauthorized(error) or not 400 <= error.status < 500:
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
    return f"{base}{within}/{kind.lower()}s/{metadata['name']}"


def _read_maker(found: Manifest) -> str:
    return str(found["metadata"].get("labels", {}).get(MANAGED_BY, ""))


def _describe(manifest: Manifest) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"
