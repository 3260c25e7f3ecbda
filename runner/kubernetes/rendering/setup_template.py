"""Render the manifests of what a run needs in its namespace, in the order to apply them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from bench.errors import UserError
from runner.kubernetes.permissions import (
    CLEANUP_PERMISSIONS,
    QUEUE_PERMISSIONS,
    RUN_PERMISSIONS,
    Permission,
)
from runner.kubernetes.rendering.job_template import render_manifest
from runner.kubernetes.rendering.manifest_check import check_manifest
from runner.profiles.model import Profile

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
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9./-]+")


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
        """Return the manifests by the name of their template, in the order to apply them, except the Secret.

        UserError if a value of the profile makes one that Kubernetes would not take.
        """
        parts = {
            "namespace": _render("namespace.yaml.j2", profile=self.profile),
            "rbac": _render(
                "rbac.yaml.j2",
                profile=self.profile,
                runner_account=RUNNER_ACCOUNT,
                permissions=self._list_permissions(),
                users=self.users,
            ),
            "claim-templates": list(self._render_claim_templates()),
        }
        if self.has_store:
            parts[STORE_PART] = _render(
                "s3.yaml.j2", profile=self.profile, image=STORE_IMAGE, node_port=STORE_NODE_PORT
            )
        return {name: manifests for name, manifests in parts.items() if manifests}

    def render_store_secret(self, access_key: str, secret_key: str) -> Manifest:
        """Return the Secret with the keys of the S3 server in the cluster. A comma in a key is not possible."""
        (secret,) = _render(
            "s3-secret.yaml.j2",
            profile=self.profile,
            access_key=access_key,
            secret_key=secret_key,
            endpoint_url=STORE_ENDPOINT,
        )
        return secret

    def _list_permissions(self) -> tuple[Permission, ...]:
        queue = QUEUE_PERMISSIONS if self.has_queue else ()
        return *RUN_PERMISSIONS, *CLEANUP_PERMISSIONS, *queue

    def _render_claim_templates(self) -> Iterator[Manifest]:
        gpu = self.profile.gpu
        if gpu is not None and gpu.request == "claim":
            for num_gpus in range(1, gpu.max_per_node + 1):
                name = gpu.name_claim_template(num_gpus)
                yield from _render("claim-template.yaml.j2", profile=self.profile, name=name, num_gpus=num_gpus)


def dump_yaml(manifests: Sequence[Manifest]) -> str:
    """Return manifests as YAML documents that PyYAML and Go's readers read alike."""
    return yaml.dump_all(manifests, Dumper=_Dumper, sort_keys=False, width=float("inf"), explicit_start=False)


def _render(template: str, **values: object) -> list[Manifest]:
    manifests = list(yaml.safe_load_all(render_manifest(template, **values)))
    for manifest in manifests:
        check_manifest(manifest, source=f"manifests/{template}")
    return manifests


class _Dumper(yaml.SafeDumper):
    """Quotes every string that is not plainly a word: readers differ in what they take for a number or a boolean."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = None if _WORD.fullmatch(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
