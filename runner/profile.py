"""A profile's name or path in, what a cluster is like to cells out: nodes, resources, images, identity.

A profile is a small YAML file. One that `extends` another replaces single keys of it; lists are replaced whole.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from bench.capabilities import GpuKind
from bench.errors import UserError
from bench.schema import Cell, Device, Framework
from bench.schema.document import Count, Document
from runner.matrix_values import suggest_word
from runner.yaml_source import Node, read_yaml

_FOLDER = Path(__file__).parent / "profiles"
BUILTIN_PROFILES = tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))
# How the tools of each cloud name the contexts that they write.
_CONTEXT_PREFIXES = {"gke_": "gke", "arn:aws:eks:": "eks", "kind-": "kind"}

# https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/, the forms in use for memory
Quantity = Annotated[str, Field(pattern=r"^[1-9][0-9]*(Ki|Mi|Gi|Ti|k|M|G|T)?$")]
ResourceName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
NodePools = Literal["cpu", "gpu"]


class NodeRule(Document):
    """One condition on a node's labels."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        if bool(self.values) != (self.operator in ("In", "NotIn")):
            raise ValueError(
                f"values: `In` and `NotIn` need some, `{self.operator}` {'none' if self.values else 'has none'}"
            )
        return self


class Toleration(Document):
    """A taint that cells may run in spite of."""

    key: str
    operator: Literal["Exists", "Equal"]
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class Pool(Document):
    """The nodes for cells of one device, and what a cell takes of such a node."""

    node_selector: dict[str, str] = {}
    """Labels that a node must have."""
    nodes: tuple[tuple[NodeRule, ...], ...] = ()
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
    compute_capability: tuple[int, int]
    max_per_node: Count
    request: Literal["limit", "claim"] = "limit"
    """`limit`: the device plugin's resource. `claim`: a ResourceClaim (dynamic resource allocation)."""
    resource: str = "nvidia.com/gpu"
    """What the device plugin calls a GPU; `nvidia.com/gpu.shared` for a share of one."""
    device_class: ResourceName = "gpu.nvidia.com"
    """Of a claim."""


class Data(Document):
    """A volume with real data for cells with `data_dir`."""

    claim: ResourceName
    """Name of the PersistentVolumeClaim."""
    mount_path: str
    """Folder in the container; `data_dir` names a folder in it."""


class Profile(Document):
    """What a cluster is like to the cells of a run."""

    name: str
    description: str = ""
    namespace: ResourceName = "benchmatrix"
    service_account: ResourceName = "benchmatrix-cell"
    """Whose cloud identity the cells have; its token is not mounted."""
    service_account_annotations: dict[str, str] = {}
    """What ties it to a cloud identity: `eks.amazonaws.com/role-arn`, `iam.gke.io/gcp-service-account`."""
    pools: dict[NodePools, Pool]
    gpu: Gpus | None
    """null: the cluster has none."""
    images: dict[Framework, dict[Device, str]] = {}
    image_pull_secrets: tuple[ResourceName, ...] = ()
    store_secret: ResourceName | None = None
    """A Secret whose keys become variables of the cells, `AWS_ACCESS_KEY_ID` for one. null: the service account's
    identity is what they have."""
    environment: dict[VariableName, str] = {}
    """Variables of the cells that are no secret, `AWS_ENDPOINT_URL` for one."""
    data: Data | None = None
    priority_class: ResourceName | None = None
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
    max_infrastructure_failures: Annotated[int, Field(ge=0, le=20)] = 2

    @model_validator(mode="after")
    def _check_pools(self) -> Self:
        if (self.gpu is None) != ("gpu" not in self.pools):
            raise ValueError(
                "gpu: is null where there is no pool `gpu`, and says what GPUs that pool has where there is one"
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

    def find_obstacle(self, cell: Cell) -> str | None:
        """Return why this cluster cannot run the cell, but for what `bench.capabilities` knows; None where it can."""
        if cell.device not in self.pools:
            return f"the profile {self.name} has no pool '{cell.device}'"
        if cell.data_dir is not None:
            if self.data is None:
                return f"data_dir: the profile {self.name} has no `data` volume"
            if not Path(cell.data_dir).is_relative_to(self.data.mount_path):
                return (
                    f"data_dir: {cell.data_dir} is not in {self.data.mount_path}, the data of the profile {self.name}"
                )
        return None

    def find_image(self, cell: Cell) -> str:
        """Return the image for a cell; UserError where the profile names none."""
        image = self.images.get(cell.framework, {}).get(cell.device)
        if image is None:
            raise UserError(
                f"profile {self.name}: images.{cell.framework}.{cell.device}: is missing; name the image for "
                f"{cell.framework} cells on a {cell.device}, in a profile of yours that has `extends: {self.name}`"
            )
        return image


def find_profile(name: str | None, context: str) -> Profile:
    """Return the profile of this name or path; None: the one that the context's name tells. UserError where none."""
    if name is None:
        name = next((known for prefix, known in _CONTEXT_PREFIXES.items() if context.startswith(prefix)), None)
    if name is None:
        known = ", ".join(BUILTIN_PROFILES)
        raise UserError(
            f"context {context}: its name does not tell what cluster it is; add --profile {known} or the path of yours"
        )
    return load_profile(name)


def load_profile(name: str) -> Profile:
    """Return a built-in profile or the one in a YAML file; UserError with file, line and key where it is wrong."""
    tree = _read_tree(name, seen=())
    try:
        return Profile.model_validate_json(json.dumps(_to_plain(tree)))
    except ValidationError as error:
        raise _explain(error, tree) from error


def _read_tree(name: str, seen: tuple[Path, ...]) -> Node:
    path = _FOLDER / f"{name}.yaml" if name in BUILTIN_PROFILES else Path(name)
    if path.suffix not in (".yaml", ".yml"):
        raise UserError(
            f"--profile {name}: is none; {suggest_word(name, BUILTIN_PROFILES)}, or give the path of a YAML file"
        )
    tree = read_yaml(path, path.name if name in BUILTIN_PROFILES else name)
    if not isinstance(tree.value, dict):
        raise tree.fault("found no keys, expected a profile; write `extends: gke` for one, and what differs")
    entries = dict(tree.value)
    base = entries.pop("extends", None)
    entries.setdefault("name", _make_name(tree, path.stem))
    own = Node(**(vars(tree) | {"value": entries}))
    if base is None:
        return own
    if not isinstance(base.value, str) or path in seen:
        raise base.fault(
            f"found {base.text!r}, expected another profile: {', '.join(BUILTIN_PROFILES)} or the path of a file"
        )
    found = base.value if base.value in BUILTIN_PROFILES else str(path.parent / base.value)
    return _merge(_read_tree(found, (*seen, path)), own)


def _make_name(tree: Node, name: str) -> Node:
    return Node(value=name, text=name, is_quoted=False, source=tree.source, line=tree.line, key="name")


def _merge(base: Node, own: Node) -> Node:
    """Return `own` with what only `base` has; mappings are merged key by key."""
    if not (isinstance(base.value, dict) and isinstance(own.value, dict)):
        return own
    merged = base.value | {
        key: _merge(base.value[key], value) if key in base.value else value for key, value in own.value.items()
    }
    return Node(**(vars(own) | {"value": merged}))


def _to_plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: _to_plain(value) for key, value in node.value.items()}
    if isinstance(node.value, list):
        return [_to_plain(value) for value in node.value]
    return node.value


def _explain(error: ValidationError, tree: Node) -> UserError:
    """Return the first fault as `FILE:LINE: KEY: message`."""
    first = error.errors()[0]
    node, rest = tree, list(first["loc"])
    while rest and (child := _find_child(node, rest[0])) is not None:
        node, rest = child, rest[1:]
    key = ".".join(filter(None, [node.key, *(str(part) for part in rest if part != "[key]")]))
    if first["type"] == "extra_forbidden" and len(rest) == 0:
        return node.fault(
            f"unknown key; {suggest_word(node.key.rpartition('.')[2], list(Profile.model_fields))}", key=key
        )
    message = first["msg"].removeprefix("Value error, ")
    return node.fault(f"{message[:1].lower()}{message[1:]}; see docs/kubernetes.md for what a profile holds", key=key)


def _find_child(node: Node, part: str | int) -> Node | None:
    if isinstance(node.value, Mapping) and isinstance(part, str):
        return node.value.get(part)
    if isinstance(node.value, list) and isinstance(part, int):
        return node.value[part]
    return None
