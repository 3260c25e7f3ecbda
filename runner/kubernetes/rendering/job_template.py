"""Render the Jobs of planned repeats: JSON, as the API takes it, checked before.

The template is rendered, read and checked against the schema of Kubernetes once per shape: what the Jobs of one shape
differ in are whole strings, which enter the finished JSON as JSON strings. So no value can leave its place.
"""

import json
import math
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import jinja2
import yaml

from bench.errors import UserError
from bench.exit_codes import FINAL_EXIT_CODES, INTERRUPTED_EXIT_CODES
from bench.schema import PlannedCell
from runner.checkout import ROOT
from runner.kubernetes.rendering.avoided_nodes import NONE_AVOIDED, AvoidedNodes, keep_off
from runner.kubernetes.rendering.job_name import JobKey
from runner.kubernetes.rendering.manifest_check import check_manifest
from runner.kubernetes.syntax import check_object_name, check_option, check_queue, check_variable_value
from runner.profiles.model import Profile

MANIFESTS = ROOT / "manifests"
IMAGE_GROUP = 65532
"""The group of the images' user, as images/framework.Dockerfile sets it."""
SLOTS = ("job_name", "run_id", "cell_id", "repeat", "cell_json")
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
        """Return the Job that `NAME/UID` names; UserError if that is none."""
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

    def render(self, planned: PlannedCell, key: JobKey, avoided: AvoidedNodes = NONE_AVOIDED) -> bytes:
        """Return the body of a Job; UserError if the profile cannot hold the cell or the manifest is not valid."""
        cell = planned.cell
        kind = (cell.framework, cell.device, cell.num_gpus, planned.timeout_seconds, avoided)
        if kind not in self._shapes:
            self._shapes[kind] = JobShape.render(self.collect_values(planned), avoided)
        return self._shapes[kind].fill(
            {
                "job_name": key.job_name,
                "run_id": key.run_id,
                "cell_id": key.cell_id,
                "repeat": str(key.number),
                "cell_json": escape_variable(cell.model_dump_json()),
            }
        )

    def collect_values(self, planned: PlannedCell) -> dict[str, object]:
        """Return what the template needs for the Jobs of one shape, except the slots; UserError as `render`."""
        cell, profile = planned.cell, self.profile
        pool = profile.pools.get(cell.device)
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
            "git_revision": self.git_revision,
            "gpu_resource": gpus.resource if gpus and gpus.request == "limit" else None,
            "claim_template": gpus.name_claim_template(cell.num_gpus) if gpus and gpus.request == "claim" else None,
            "image_group": IMAGE_GROUP,
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
    def render(cls, values: Mapping[str, object], avoided: AvoidedNodes = NONE_AVOIDED) -> "JobShape":
        """Render the Job template with placeholders in the slots, and check the result against the Kubernetes schema.

        Its pods keep off the nodes `avoided`. Raise UserError if it is not a valid Job.
        """
        token = secrets.token_hex(8)
        stand_ins = {name: f"slot-{name.replace('_', '-')}-{token}" for name in SLOTS}
        manifest = read_manifest(render_manifest("job.yaml.j2", **values, slot=stand_ins))
        keep_off(manifest, avoided)
        check_manifest(manifest, source="manifests/job.yaml.j2")
        text = json.dumps(manifest, separators=(",", ":"))
        names = {json.dumps(stand_in): name for name, stand_in in stand_ins.items()}
        pieces = re.split(f"({'|'.join(map(re.escape, names))})", text)
        return cls(pieces=tuple(names.get(piece, piece) for piece in pieces))

    def fill(self, values: Mapping[str, str]) -> bytes:
        """Return the JSON with a value in every slot."""
        quoted = {name: json.dumps(value) for name, value in values.items()}
        return "".join(quoted[piece] if index % 2 else piece for index, piece in enumerate(self.pieces)).encode()


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
