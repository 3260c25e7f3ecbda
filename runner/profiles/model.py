"""A profile's name or path in, what a cluster is like to cells out: nodes, resources, images, identity.

A profile is a small YAML file. One that `extends` another replaces single keys of it; lists are replaced whole, and
null removes what the other says. docs/profiles.md lists all keys.
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from bench.capabilities import GpuKind
from bench.errors import UserError
from bench.schema import Cell, Device, Framework
from bench.schema.document import Count, Document
from runner.checkout import has_checkout
from runner.images.names import find_image, make_arguments, name_image
from runner.kubernetes.rendering.job_name import OWN_LABELS
from runner.kubernetes.syntax import (
    MAX_ENVIRONMENT_BYTES,
    AnnotationValue,
    DnsLabel,
    Image,
    LabelKey,
    LabelValue,
    MountPath,
    ObjectName,
    Quantity,
    Resource,
    VariableName,
    VariableValue,
    check_dns_label,
    check_option,
)
from runner.matrix.values import suggest_word
from runner.yaml_files.model_errors import explain_fault
from runner.yaml_files.source import Node, quote, read_yaml

_FOLDER = Path(__file__).parent
BUILTIN_PROFILES = tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))
# How the tools of each cloud name the contexts that they write: gcloud, aws, eksctl and kind.
_CONTEXT_PREFIXES = {"gke_": "gke", "arn:aws:eks:": "eks", "arn:aws-": "eks", "kind-": "kind"}
_CONTEXT_SUFFIXES = {".eksctl.io": "eks"}

_EXPECTED = "a profile; write `extends: gke` for one, and what differs"
NodePools = Literal["cpu", "gpu"]


class NodeRule(Document):
    """One condition on a node's labels."""

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[LabelValue, ...] = ()
    """For `In` and `NotIn`."""

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        needs_values = self.operator in ("In", "NotIn")
        if needs_values and not self.values:
            raise ValueError(f"values: is missing or empty; `{self.operator}` needs a list of at least one")
        if self.values and not needs_values:
            raise ValueError(f"values: `{self.operator}` takes none; remove them, or write `In` or `NotIn`")
        return self


class Toleration(Document):
    """A taint that cells may run in spite of."""

    key: LabelKey
    operator: Literal["Exists", "Equal"]
    value: LabelValue | None = None
    """For `Equal`; null: an empty one."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """null: all of them."""

    @model_validator(mode="after")
    def _check_value(self) -> Self:
        if self.operator == "Exists" and self.value is not None:
            raise ValueError("value: `Exists` takes none; remove it, or write `operator: Equal`")
        return self


class Pool(Document):
    """The nodes for cells of one device, and what a cell takes of such a node."""

    node_selector: dict[LabelKey, LabelValue] = {}
    """Labels that a node must have."""
    nodes: tuple[Annotated[tuple[NodeRule, ...], Field(min_length=1)], ...] = ()
    """Lists of rules, of which one must hold in whole."""
    tolerations: tuple[Toleration, ...] = ()
    cpus: Count
    """Whole cores of a cell, requested and limited: QoS Guaranteed."""
    memory: Quantity
    is_alone_on_node: bool = True
    """No other cell runs on the node of a cell, of whatever run and namespace."""


class Gpus(Document):
    """The GPUs of the pool `gpu`, and how a cell asks for them."""

    name: str
    """As NVML names it."""
    compute_capability: tuple[Annotated[int, Field(ge=1, le=99)], Annotated[int, Field(ge=0, le=99)]]
    """Major and minor number, as a list."""
    max_per_node: Annotated[int, Field(ge=1, le=64)]
    """GPUs of the largest node."""
    request: Literal["limit", "claim"] = "limit"
    """`limit`: the device plugin's resource. `claim`: a ResourceClaim (dynamic resource allocation)."""
    resource: Resource = "nvidia.com/gpu"
    """What the device plugin calls a GPU; `nvidia.com/gpu.shared` for a share of one."""
    device_class: ObjectName = "gpu.nvidia.com"
    """Of a claim."""
    claim_prefix: DnsLabel = "benchmatrix"
    """What the names of the ResourceClaimTemplates begin with."""

    def name_claim_template(self, num_gpus: int) -> str:
        """Return the name of the ResourceClaimTemplate for so many GPUs."""
        return f"{self.claim_prefix}-{num_gpus}-gpu"


class Data(Document):
    """A volume with real data for cells with `data_dir`."""

    claim: ObjectName
    """Name of the PersistentVolumeClaim."""
    mount_path: MountPath
    """Folder in the container; `data_dir` names a folder in it."""


class Profile(Document):
    """What a cluster is like to the cells of a run."""

    name: str
    description: str = ""
    namespace: DnsLabel = "benchmatrix"
    labels: dict[LabelKey, LabelValue] = {}
    """Put on Jobs and pods besides the tool's own, for bills and policies."""
    service_account: ObjectName = "benchmatrix-cell"
    """Whose cloud identity the cells have; its token is not mounted."""
    service_account_annotations: dict[LabelKey, AnnotationValue] = {}
    """What ties it to a cloud identity: `eks.amazonaws.com/role-arn`, `iam.gke.io/gcp-service-account`."""
    pools: dict[NodePools, Pool]
    gpu: Gpus | None = None
    """null: the cluster has none."""
    registry: Image | None = None
    """Where `benchmatrix images push` put the images of this checkout; their tags are their content. null: see
    `images`."""
    image_base: Image | None = None
    """What `--base` was when the images in `registry` were built; it is part of their tags. null: it was not given."""
    image_cpu_index: VariableValue | None = None
    """The same for `--cpu-index`."""
    images: dict[Framework, dict[Device, Image]] = {}
    """By framework and device; goes before `registry`."""
    has_compiler: bool = False
    """The PyTorch images have a C++ compiler, which torch.compile needs: this project's have none."""
    image_pull_secrets: tuple[ObjectName, ...] = ()
    store_secret: ObjectName | None = None
    """A Secret whose keys become variables of the cells, `AWS_ACCESS_KEY_ID` for one. null: the service account's
    identity is what they have."""
    environment: dict[VariableName, VariableValue] = {}
    """Variables of the cells that are no secret, `AWS_ENDPOINT_URL` for one."""
    data: Data | None = None
    priority_class: ObjectName | None = None
    evict_never: bool = True
    """Ask the cluster autoscaler not to move a cell that measures."""
    tmp_size: Quantity = "8Gi"
    shm_size: Quantity = "1Gi"
    start_seconds: Count = 900
    """Allowed on top of a cell's `timeout_seconds`, for pulling the image."""
    job_deadline_seconds: Count = 86_400
    """How long a Job may take, waiting for a node and pods that were preempted included."""
    keep_finished_seconds: Count = 86_400
    """How long the cluster keeps a finished Job: so long can a runner be away before it misses how a pod died."""
    grace_seconds: Count = 60
    """Between a pod's notice that it has to go, and its end."""
    max_infrastructure_failures: Annotated[int, Field(ge=0, le=20)] = 2
    """How many pods of a Job may fail for another reason than the cell and a disruption of its node."""

    @model_validator(mode="after")
    def _check_pools(self) -> Self:
        if not self.pools:
            raise ValueError("pools: is empty; write `cpu` or `gpu` below it, with `cpus` and `memory`")
        if self.gpu is None and "gpu" in self.pools:
            raise ValueError("gpu: is missing; say what GPUs the nodes of the pool `gpu` have")
        if self.gpu is not None and "gpu" not in self.pools:
            raise ValueError("gpu: there is no pool `gpu`; write pools.gpu, or `gpu: null`")
        return self

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        own = sorted(OWN_LABELS & self.labels.keys())
        if own:
            raise ValueError(f"labels: {own[0]} is set by the tool; take another key")
        return self

    @model_validator(mode="after")
    def _check_environment(self) -> Self:
        num_bytes = sum(len(f"{name}={value}".encode()) for name, value in self.environment.items())
        if num_bytes > MAX_ENVIRONMENT_BYTES:
            raise ValueError(
                f"environment: has {num_bytes:,} bytes in all, expected at most {MAX_ENVIRONMENT_BYTES:,}; put larger "
                "things on the `data` volume"
            )
        return self

    @property
    def gpu_kind(self) -> GpuKind | None:
        """The GPUs that a cell can have on one node."""
        if self.gpu is None:
            return None
        return GpuKind(
            name=self.gpu.name, compute_capability=self.gpu.compute_capability, num_gpus=self.gpu.max_per_node
        )

    def in_namespace(self, namespace: str) -> "Profile":
        """Return the profile with another namespace; UserError where that is no name for one."""
        return self.model_copy(update={"namespace": check_option("--namespace", namespace, check_dns_label)})

    def find_obstacle(self, cell: Cell) -> str | None:
        """Return why this cluster cannot run the cell, but for what `bench.capabilities` knows; None where it can."""
        if cell.device not in self.pools:
            return f"the profile {self.name} has no pool '{cell.device}'"
        if (cell.framework, cell.mode) == ("pytorch", "compiled") and not self.has_compiler:
            return "compiled PyTorch needs a C++ compiler, and the images have none (has_compiler of the profile)"
        if cell.data_dir is not None:
            if self.data is None:
                return f"data_dir: the profile {self.name} has no `data` volume"
            if not Path(os.path.normpath(cell.data_dir)).is_relative_to(self.data.mount_path):
                return (
                    f"data_dir: {cell.data_dir} is not in {self.data.mount_path}, the data of the profile {self.name}"
                )
        return None

    def find_image(self, cell: Cell) -> str:
        """Return the image for a cell; UserError where the profile names none."""
        image = self.images.get(cell.framework, {}).get(cell.device)
        if image is not None:
            return image
        place = f"profile {self.name}: images.{cell.framework}.{cell.device}"
        if not has_checkout():  # in the image of the runner, which cannot tell the tags in a registry
            raise UserError(
                f"{place}: is missing; name the image for {cell.framework} cells on a {cell.device}, in the chart's "
                f"values at `profile.images`: `benchmatrix images push` prints the lines; or have a matrix without them"
            )
        if self.registry is None:
            raise UserError(
                f"{place}: is missing; name the image for {cell.framework} cells on a {cell.device}, or the `registry` "
                f"of all images, in a profile of yours that has `extends: {self.name}`"
            )
        arguments = make_arguments(self.image_base, self.image_cpu_index)
        return name_image(self.registry, find_image(cell.framework, cell.device), arguments)


def find_profile(name: str | None, context: str) -> Profile:
    """Return the profile of this name or path; None: the one that the context's name tells. UserError where none."""
    if name is None:
        by_prefix = (known for prefix, known in _CONTEXT_PREFIXES.items() if context.startswith(prefix))
        by_suffix = (known for suffix, known in _CONTEXT_SUFFIXES.items() if context.endswith(suffix))
        name = next(by_prefix, None) or next(by_suffix, None)
    if name is None:
        known = ", ".join(BUILTIN_PROFILES)
        raise UserError(
            f"context {context}: its name does not tell what cluster it is; add --profile {known} or the path of yours"
        )
    return load_profile(name)


def load_profile(name: str) -> Profile:
    """Return a built-in profile or the one in a YAML file; UserError with file, line and key where it is wrong."""
    path = _find_file(name, Path())
    if path is None:
        raise UserError(
            f"--profile {name}: is none; {suggest_word(name, BUILTIN_PROFILES)}, or give the path of a .yaml file"
        )
    tree = _read_tree(path, path.name if name in BUILTIN_PROFILES else name, seen=())
    try:
        return Profile.model_validate_json(json.dumps(_to_plain(tree)))
    except ValidationError as error:
        raise explain_fault(error, tree, Profile) from None


def _find_file(name: str, folder: Path) -> Path | None:
    """Return the file of a built-in profile, or a path from `folder`; None where the name is neither."""
    if name in BUILTIN_PROFILES:
        return _FOLDER / f"{name}.yaml"
    return folder / name if name.endswith((".yaml", ".yml")) else None


def _read_tree(path: Path, source: str, seen: tuple[str, ...]) -> Node:
    """Return what stands in a profile and in those that it extends."""
    tree = read_yaml(path, source, expected=_EXPECTED)
    if not isinstance(tree.value, dict):
        raise tree.fault(f"found no keys, expected {_EXPECTED}")
    entries = dict(tree.value)
    base = entries.pop("extends", None)
    entries.setdefault("name", _make_name(tree, path.stem))
    own = replace(tree, value=entries)
    if base is None or base.value is None:
        return own
    found = _find_base(base, path.parent)
    seen = (*seen, os.path.realpath(path))
    if os.path.realpath(found) in seen:
        raise base.fault(f"found {quote(base.text)}, which extends this file in turn; remove one of the two")
    return _merge(_read_tree(found, found.name if found.parent == _FOLDER else str(found), seen), own)


def _find_base(base: Node, folder: Path) -> Path:
    """Return the file that `extends` names."""
    found = _find_file(base.value, folder) if isinstance(base.value, str) else None
    advice = f"{', '.join(BUILTIN_PROFILES)} or the path of a .yaml file"
    if found is None:
        shown = quote(base.text) if isinstance(base.value, str) else "no name"
        near = suggest_word(base.text, BUILTIN_PROFILES)
        raise base.fault(f"found {shown}, expected a profile: {advice}" + (f"; {near}" if near.endswith("?") else ""))
    if not os.path.isfile(found):
        raise base.fault(f"there is no file {quote(str(found))}, expected a profile: {advice}")
    return found


def _make_name(tree: Node, name: str) -> Node:
    return Node(value=name, text=name, is_quoted=False, source=tree.source, line=tree.line, key="name")


def _merge(base: Node, own: Node) -> Node:
    """Return `own` with what only `base` has; mappings are merged key by key."""
    if not (isinstance(base.value, dict) and isinstance(own.value, dict)):
        return own
    merged = base.value | {
        key: _merge(base.value[key], value) if key in base.value else value for key, value in own.value.items()
    }
    return replace(own, value=merged)


def _to_plain(node: Node) -> Any:
    """Return the values alone; a key with null is left out, so that its default holds."""
    if isinstance(node.value, dict):
        return {key: _to_plain(value) for key, value in node.value.items() if value.value is not None}
    if isinstance(node.value, list):
        return [_to_plain(value) for value in node.value]
    return node.value
