"""Renders the Jobs of a run: manifests/job.yaml.j2, a profile's overlay, tenants, and the nodes to keep to."""

import copy
import hashlib
import json
import math
import re
import secrets
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import yaml

from bench.errors import FINAL_EXIT_CODES, INTERRUPTED_EXIT_CODES, UserError
from bench.schema import PlannedCell, Run
from runner.kubernetes.names import CONTAINER, HASH_DIGITS, JobKey, check_option, check_queue, hash_store
from runner.kubernetes.objects import INSTANCE_TYPE, MAX_WEIGHT, PREFERRED, REQUIRED, read_quantity
from runner.profiles.model import Profile
from runner.sources import find_source


def compute_fingerprint(run: Run, profile: Profile, store_url: str) -> str:
    """Return the hex digits in the name and in a label of every Job of a run, by which a runner knows its own.

    So the same run id with another store, plan or images gives other Jobs, in the same namespace too. UserError if the
    profile names no image for one of its cells.

    In it: the store's URL, variables and Secret that lead the cells to their store and can change what they measure,
    the planned cells and repeats, the images by reference, and the cores of a cell. Not in it: what decides only where
    and when a Job runs, or for how long it is waited; a run may go on with another value of these.
    """
    cells = {(planned.cell.framework, planned.cell.device): planned.cell for planned in run.cells}
    parts = {
        "store": store_url.rstrip("/"),
        "store_secret": profile.store_secret,
        "environment": profile.environment | run.environment,
        "plan": run.plan_id,
        "images": {" ".join(kind): profile.find_image(cell) for kind, cell in cells.items()},
        "cpus": {device: profile.pools[device].cpus for _, device in cells if device in profile.pools},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:HASH_DIGITS]


# An overlay is merged as `kubectl patch` merges: lists by the names of their items.
# https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/
MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "env": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "resourceClaims": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""By the list's key: what tells its items apart, `x-kubernetes-patch-merge-key` in the schema of Kubernetes. Items of
other lists, tolerations among them, are appended."""
REPLACEABLE = frozenset(
    {
        "spec.containers.imagePullPolicy",
        # Groups are the cluster's business: a volume may belong to another group than that of the images.
        "spec.securityContext.fsGroup",
        # `RuntimeDefault` or `Localhost` with a profile of the node: both are allowed by `restricted`.
        "spec.securityContext.seccompProfile.type",
    }
)
"""Values of the tool that an overlay may replace."""


def merge_overlay(base: Any, added: Any, path: tuple[str, ...], *, source: str) -> Any:
    """Return a part of a pod's template, at this path, merged with the overlay's; `source` begins messages."""
    if isinstance(base, dict) and isinstance(added, dict):
        return base | {
            key: merge_overlay(base[key], value, (*path, key), source=source) if key in base else value
            for key, value in added.items()
        }
    if isinstance(base, list) and isinstance(added, list):
        name = MERGE_KEYS.get(path[-1])
        if name is None:
            return [*base, *(item for item in added if item not in base)]
        merged = {item[name]: item for item in base}
        for item in added:
            known = merged.get(item[name])
            merged[item[name]] = item if known is None else merge_overlay(known, item, path, source=source)
        return list(merged.values())
    place = ".".join(path)
    if base != added and place not in REPLACEABLE:
        raise UserError(
            f"{source}: overlay.{place}: is {added!r}, but the tool sets it to {base!r}, which follows from other keys "
            "of the profile or must be so; remove it from the overlay"
        )
    return added


OWN_VOLUMES = ("tmp", "shm")
"""Volumes that each tenant has to itself, as if it were alone."""


def add_tenants(job: MutableMapping[str, Any], num_tenants: int) -> None:
    """Give a Job's pod `num_tenants` copies of its one container, and tell each copy its number.

    One pod, so that the group is placed, preempted and measured again as a whole: docs/decisions/0036-tenants.md.
    How any of them ended decides what the Job does next:
    https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy
    """
    pod = job["spec"]["template"]["spec"]
    # Else every tenant would be process 1 to itself, and none could be told from another by what NVML says of them:
    # https://kubernetes.io/docs/tasks/configure-pod-container/share-process-namespace/
    pod["shareProcessNamespace"] = True
    (leader,), pod["containers"] = pod["containers"], []
    own = [volume for volume in pod["volumes"] if volume["name"] in OWN_VOLUMES]
    for number in range(num_tenants):
        names = {volume["name"]: f"{volume['name']}-{number}" for volume in own if number}
        pod["volumes"] += [copy.deepcopy(volume) | {"name": names[volume["name"]]} for volume in own if number]
        tenant = copy.deepcopy(leader)
        tenant["name"] = f"tenant-{number}" if number else CONTAINER
        tenant["env"] += [
            {"name": "BENCH_TENANT", "value": str(number)},
            {"name": "BENCH_TENANT_GROUP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        ]
        for mount in tenant["volumeMounts"]:
            mount["name"] = names.get(mount["name"], mount["name"])
        pod["containers"].append(tenant)
    for rule in job["spec"]["podFailurePolicy"]["rules"]:
        rule.get("onExitCodes", {}).pop("containerName", None)


@dataclass(frozen=True, kw_only=True)
class NodeWish:
    """Where a Job's pod should run, by affinity to the names of nodes (kubernetes/kubernetes#62002).

    The label `kubernetes.io/hostname` need not be the name: iovisor/kubectl-trace#173,
    rancher/local-path-provisioner#186.
    """

    node: str = ""
    """The pod waits for it. Empty: any."""
    instance_type: str = ""
    """The machine type to prefer; empty: none."""
    excluded: tuple[str, ...] = ()
    """A pod waits rather than run there: their last attempts were faults."""
    disliked: tuple[str, ...] = ()
    """A pod runs there only where no other node has room: their last attempt was a fault."""


ANY_NODE = NodeWish()


def add_wish(manifest: MutableMapping[str, Any], wish: NodeWish) -> None:
    """Add the wish to the node affinity of a Job's pod, to every term of it: terms are alternatives."""
    preferred: list[dict[str, Any]] = []
    required = [_match("metadata.name", "NotIn", node) for node in wish.excluded]
    if wish.node:
        required.append(_match("metadata.name", "In", wish.node))
    if wish.disliked:
        preferred.append({"matchFields": [_match("metadata.name", "NotIn", node) for node in wish.disliked]})
    if wish.instance_type:
        preferred.append({"matchExpressions": [_match(INSTANCE_TYPE, "In", wish.instance_type)]})
    if not required and not preferred:
        return
    affinity = manifest["spec"]["template"]["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    if required:
        for term in affinity.setdefault(REQUIRED, {}).setdefault("nodeSelectorTerms", [{}]):
            term.setdefault("matchFields", []).extend(required)
    for preference in preferred:
        affinity.setdefault(PREFERRED, []).append({"weight": MAX_WEIGHT, "preference": preference})


def _match(key: str, operator: str, value: str) -> dict[str, Any]:
    """Return a requirement on a node; one on its name takes a single value."""
    return {"key": key, "operator": operator, "values": [value]}


# The template is rendered and read once per shape: what the Jobs of one shape differ in are whole strings, which enter
# the finished JSON as JSON strings. So no value can leave its place.
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
class JobRenderer:
    """Everything that the Jobs of one run have in common."""

    profile: Profile
    store_url: str
    git_revision: str | None
    queue: str | None = None
    """Kueue's LocalQueue: the Jobs are created suspended, and Kueue starts them. None: they start at once."""
    owner: str | None = None
    """NAME/UID of a Job in the same namespace that owns the Jobs, with which they are deleted; None: they stay until
    their TTL is over. https://kubernetes.io/docs/concepts/architecture/garbage-collection/#owners-dependents"""
    _shapes: dict[tuple[object, ...], tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.queue is not None:
            check_option("--queue", self.queue, check_queue)

    def render(self, planned: PlannedCell, key: JobKey, wish: NodeWish = ANY_NODE) -> bytes:
        """Return the body of a Job; UserError if the profile cannot hold the cell or its overlay cannot be merged."""
        cell = planned.cell
        if not self.profile.avoid_faulty_nodes:
            wish = replace(wish, excluded=(), disliked=())
        size = cell.num_gpus, cell.tenants, cell.sharing
        any_wish = replace(wish, node="node" if wish.node else "")  # its name is a slot
        kind = (cell.framework, cell.device, size, planned.timeout_seconds, any_wish)
        if kind not in self._shapes:
            self._shapes[kind] = render_shape(
                self.collect_values(planned), any_wish, profile=self.profile, num_tenants=cell.tenants
            )
        values = {
            "job_name": key.job_name,
            "run_id": key.run_id,
            "cell_id": key.cell_id,
            "repeat": str(key.number),
            "fingerprint": key.fingerprint,
            "cell_json": escape_variable(cell.model_dump_json()),
            "node": wish.node,
        }
        return fill_shape(self._shapes[kind], values)

    def collect_values(self, planned: PlannedCell) -> dict[str, object]:
        """Return what the template needs for the Jobs of one shape, except the slots."""
        cell, profile = planned.cell, self.profile
        pool, sharing = profile.find_pool(cell), profile.find_sharing(cell)
        if pool is None:
            raise UserError(f"profile {profile.name}: has no pool '{cell.device}', which {cell.cell_id} needs")
        gpus = profile.gpu if cell.device == "gpu" else None
        resource = None  # what a container asks of the device plugin
        if gpus is not None and gpus.request == "limit":
            resource = (sharing.resource if sharing else None) or gpus.resource
        return {
            "profile": profile,
            "cell": cell,
            "pool": pool,
            "image": profile.find_image(cell),
            "queue": self.queue,
            "owner": self.owner and self.owner.partition("/"),
            "store_url": self.store_url,
            "store_label": hash_store(self.store_url),
            "git_revision": self.git_revision,
            "sharing": sharing,
            # Where the clients of MPS meet its server: the device plugin mounts it, or the node's own is used.
            "has_shm": sharing is None or cell.sharing != "mps",
            "gpu_resource": resource,
            "claim_template": gpus.name_claim_template(cell.num_gpus) if gpus and gpus.request == "claim" else None,
            "image_group": IMAGE_GROUP,
            # Of the disk: /tmp and the log, since nothing else can be written to.
            "ephemeral_storage": f"{math.ceil(read_quantity(profile.tmp_size) / MIB) + LOG_MIB}Mi",
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


def render_shape(
    values: Mapping[str, object], wish: NodeWish, *, profile: Profile, num_tenants: int = 1
) -> tuple[str, ...]:
    """Return a Job's JSON cut where the values of the slots belong: text and names of slots in turns, text at its ends.

    `wish`: of its node, only whether there is one. The profile's overlay is merged into the Job before its pod has a
    container for each tenant. UserError if that cannot be.
    """
    token = secrets.token_hex(8)
    stand_ins = {name: f"slot-{name.replace('_', '-')}-{token}" for name in SLOTS}
    (manifest,) = render_manifests("job.yaml.j2", **values, slot=stand_ins)
    try:
        if profile.overlay:
            spec = manifest["spec"]
            spec["template"] = merge_overlay(spec["template"], profile.overlay, (), source=f"profile {profile.name}")
        if num_tenants > 1:
            add_tenants(manifest, num_tenants)
        # After the overlay: the wish is for every alternative of the node affinity, also those that came with it.
        add_wish(manifest, replace(wish, node=stand_ins["node"]) if wish.node else wish)
    except (AttributeError, KeyError, TypeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise UserError(f"profile {profile.name}: overlay: is no part of a pod as Kubernetes has it: {what}") from error
    text = json.dumps(manifest, separators=(",", ":"))
    names = {json.dumps(stand_in): name for name, stand_in in stand_ins.items()}
    return tuple(names.get(piece, piece) for piece in re.split(f"({'|'.join(map(re.escape, names))})", text))


def fill_shape(pieces: Sequence[str], values: Mapping[str, str]) -> bytes:
    quoted = {name: json.dumps(value) for name, value in values.items()}
    return "".join(quoted[piece] if index % 2 else piece for index, piece in enumerate(pieces)).encode()


def render_manifests(template: str, **values: object) -> list[dict[str, Any]]:
    """Return what a template of `manifests/` gives with its values in it; an undefined name is an error."""
    text = _open_templates().get_template(template).render(**values)
    return list(yaml.load_all(text, Loader=_LOADER))  # noqa: S506  (a safe loader, the fast one where it is there)


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
