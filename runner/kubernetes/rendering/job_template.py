"""Render the Jobs of planned repeats: JSON, as the API takes it, checked before.

The template is rendered, read and checked against the schema of Kubernetes once per shape: what the Jobs of one shape
differ in are whole strings, which enter the finished JSON as JSON strings. So no value can leave its place.
"""

import json
import math
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import jinja2
import yaml

from bench.errors import UserError
from bench.exit_codes import FINAL_EXIT_CODES, INTERRUPTED_EXIT_CODES
from bench.schema import PlannedCell
from runner.kubernetes.node_labels import read_quantity
from runner.kubernetes.rendering.job_name import JobKey, hash_store
from runner.kubernetes.rendering.manifest_check import check_manifest
from runner.kubernetes.rendering.node_wish import ANY_NODE, NodeWish, add_wish
from runner.kubernetes.rendering.overlay_merge import merge_overlay
from runner.kubernetes.rendering.tenant_containers import add_tenants
from runner.kubernetes.syntax import check_object_name, check_option, check_queue, check_variable_value
from runner.profiles.model import Profile
from runner.profiles.pools import Gpus, GpuSharing
from runner.sources import find_source

MANIFESTS = find_source("manifests")
IMAGE_GROUP = 65532
"""The group of the images' user, as images/framework.Dockerfile sets it."""
MIB = 2**20
LOG_MIB = 64
"""Room for a container's log: kubelets keep 5 files of 10 MiB (containerLogMaxFiles, containerLogMaxSize) and look at
their sizes every ten seconds. https://kubernetes.io/docs/concepts/cluster-administration/logging/#log-rotation"""
SLOTS = ("job_name", "run_id", "cell_id", "repeat", "fingerprint", "cell_json", "node")
# What a YAML reader may fold, refuse or take for something else inside a double-quoted string.
_UNSAFE = re.compile(r"[^ !#-\[\]-~\xa1-\u1fff\u2030-\ud7ff\uf900-\ufdcf]")


@dataclass(frozen=True, kw_only=True)
class JobOwner:
    """A Job in the same namespace that owns the Jobs of the cells: they are deleted with it.

    https://kubernetes.io/docs/concepts/architecture/garbage-collection/#owners-dependents
    """

    name: str
    uid: str

    @classmethod
    def parse(cls, text: str) -> "JobOwner":
        """Return the Job that `NAME/UID` names; raise UserError if the text has another form."""
        name, _, uid = text.partition("/")
        try:
            return cls(name=check_option("--owner", name, check_object_name), uid=str(UUID(uid)))
        except ValueError as error:
            raise UserError(f"--owner {text}: found no NAME/UID of a Job; leave it out when you run by hand") from error


@dataclass(frozen=True, kw_only=True)
class JobRenderer:
    """Everything that the Jobs of one run have in common."""

    profile: Profile
    store_url: str
    git_revision: str | None
    queue: str | None = None
    """Kueue's LocalQueue: the Jobs are created suspended, and Kueue starts them. None: they start at once."""
    owner: JobOwner | None = None
    """Owner of the Jobs, with which they are deleted. None: they stay until their TTL is over."""
    _shapes: dict[tuple[object, ...], "JobShape"] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.queue is not None:
            check_option("--queue", self.queue, check_queue)
        check_option("--store", self.store_url, check_variable_value)

    def render(self, planned: PlannedCell, key: JobKey, wish: NodeWish = ANY_NODE) -> bytes:
        """Return the body of a Job; UserError if the profile cannot hold the cell or the manifest is not valid."""
        cell = planned.cell
        size = cell.num_gpus, cell.tenants, cell.sharing
        kind = (cell.framework, cell.device, size, planned.timeout_seconds, wish.shape)
        if kind not in self._shapes:
            values, profile = self.collect_values(planned), self.profile
            self._shapes[kind] = JobShape.render(
                values,
                wish,
                overlay=profile.overlay,
                overlay_source=f"profile {profile.name}",
                num_tenants=cell.tenants,
            )
        return self._shapes[kind].fill(
            {
                "job_name": key.job_name,
                "run_id": key.run_id,
                "cell_id": key.cell_id,
                "repeat": str(key.number),
                "fingerprint": key.fingerprint,
                "cell_json": escape_variable(cell.model_dump_json()),
                "node": wish.node,
            }
        )

    def collect_values(self, planned: PlannedCell) -> dict[str, object]:
        """Return what the template needs for the Jobs of one shape, except the slots; UserError as `render`."""
        cell, profile = planned.cell, self.profile
        pool, sharing = profile.find_pool(cell), profile.find_sharing(cell)
        if pool is None:
            raise UserError(f"profile {profile.name}: has no pool '{cell.device}', which {cell.cell_id} needs")
        gpus = profile.gpu if cell.device == "gpu" else None
        return {
            "profile": profile,
            "cell": cell,
            "pool": pool,
            "image": profile.find_image(cell),
            "queue": self.queue,
            "owner": self.owner,
            "store_url": self.store_url,
            "store_label": hash_store(self.store_url),
            "git_revision": self.git_revision,
            "sharing": sharing,
            # Where the clients of MPS meet its server: the device plugin mounts it, or the node's own is used.
            "has_shm": sharing is None or cell.sharing != "mps",
            "gpu_resource": _name_gpu_resource(gpus, sharing),
            "claim_template": gpus.name_claim_template(cell.num_gpus) if gpus and gpus.request == "claim" else None,
            "image_group": IMAGE_GROUP,
            "ephemeral_storage": size_ephemeral_storage(profile.tmp_size),
            "interrupted_exit_codes": sorted(INTERRUPTED_EXIT_CODES),
            "final_exit_codes": sorted(FINAL_EXIT_CODES),
            "timeout_seconds": f"{planned.timeout_seconds:g}",
            "pod_deadline_seconds": self._find_deadline(planned),
        }

    def _find_deadline(self, planned: PlannedCell) -> int:
        """Return the seconds that a pod may take; UserError if its Job would be ended before."""
        profile, seconds = self.profile, math.ceil(planned.timeout_seconds) + self.profile.start_seconds
        if seconds > profile.active_deadline_seconds:
            raise UserError(
                f"profile {profile.name}: active_deadline_seconds: {profile.active_deadline_seconds} is less than the "
                f"timeout_seconds of {planned.cell.cell_id}, {planned.timeout_seconds:g}, and start_seconds, "
                f"{profile.start_seconds}; raise it, or lower the others"
            )
        return seconds


@dataclass(frozen=True, kw_only=True)
class JobShape:
    """A Job's JSON, cut where the values of the slots belong."""

    pieces: tuple[str, ...]
    """Text and names of slots in turns; begins and ends with text."""

    @classmethod
    def render(
        cls,
        values: Mapping[str, object],
        wish: NodeWish = ANY_NODE,
        *,
        overlay: Mapping[str, Any] | None = None,
        overlay_source: str = "",
        num_tenants: int = 1,
    ) -> "JobShape":
        """Render the Job template with placeholders in the slots, and check the result against the Kubernetes schema.

        `wish`: of its node, only whether there is one. `overlay` is merged into the Job, before its pod has a container
        for each tenant. Raise UserError if that cannot be, or if the result is not a valid Job.
        """
        token = secrets.token_hex(8)
        stand_ins = {name: f"slot-{name.replace('_', '-')}-{token}" for name in SLOTS}
        manifest = read_manifest(render_manifest("job.yaml.j2", **values, slot=stand_ins))
        if overlay:
            manifest = merge_overlay(manifest, overlay, source=overlay_source)
        if num_tenants > 1:
            add_tenants(manifest, num_tenants)
        # After the overlay: the wish is for every alternative of the node affinity, also those that came with it.
        add_wish(manifest, replace(wish, node=stand_ins["node"]) if wish.node else wish)
        check_manifest(manifest, source="manifests/job.yaml.j2")
        text = json.dumps(manifest, separators=(",", ":"))
        names = {json.dumps(stand_in): name for name, stand_in in stand_ins.items()}
        pieces = re.split(f"({'|'.join(map(re.escape, names))})", text)
        return cls(pieces=tuple(names.get(piece, piece) for piece in pieces))

    def fill(self, values: Mapping[str, str]) -> bytes:
        """Return the JSON with a value in every slot."""
        quoted = {name: json.dumps(value) for name, value in values.items()}
        return "".join(quoted[piece] if index % 2 else piece for index, piece in enumerate(self.pieces)).encode()


def _name_gpu_resource(gpus: Gpus | None, sharing: GpuSharing | None) -> str | None:
    """Return what a container asks of the device plugin; None: nothing."""
    if gpus is None or gpus.request != "limit":
        return None
    return (sharing.resource if sharing else None) or gpus.resource


def size_ephemeral_storage(tmp_size: str) -> str:
    """Return what a cell requests of its node's disk: /tmp and its log, since nothing else can be written to."""
    return f"{math.ceil(read_quantity(tmp_size) / MIB) + LOG_MIB}Mi"


def render_manifest(template: str, **values: object) -> str:
    """Return a template of `manifests/` with its values in it; an undefined name is an error."""
    return _open_templates().get_template(template).render(**values)


def read_manifest(text: str) -> dict[str, Any]:
    """Return the one document of a rendered manifest."""
    manifest = yaml.load(text, Loader=_LOADER)  # noqa: S506  (a safe loader, the fast one where it is there)
    if not isinstance(manifest, dict):
        raise TypeError(f"a manifest must be one mapping, not {type(manifest).__name__}")
    return manifest


def quote_yaml(value: object) -> str:
    """Return a double-quoted YAML string that every YAML reader reads back as `value`, on one line."""
    return '"' + _UNSAFE.sub(lambda match: f"\\U{ord(match[0]):08X}", str(value)) + '"'


def escape_variable(text: str) -> str:
    """Return the value of an environment variable such that Kubernetes leaves it as it is: `$(NAME)` would be replaced.

    https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
    """
    return text.replace("$", "$$")


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def _open_templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(MANIFESTS)), undefined=jinja2.StrictUndefined, autoescape=False
    )
    environment.filters |= {"quoted": quote_yaml, "variable": escape_variable}
    return environment
