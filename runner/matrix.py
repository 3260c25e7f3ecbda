"""Matrix files: read, checked, expanded into planned cells, and a run of them planned."""

import hashlib
import itertools
import math
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    create_model,
    model_validator,
)

from bench.errors import UserError
from bench.registry import DECODERS, EIGHT_BITS, ELEMENT_BYTES, FRAMEWORKS, MODELS
from bench.schema import (
    MAX_REPEATS,
    Cell,
    Cluster,
    LeftOutCell,
    Name,
    Neighbour,
    PlannedCell,
    Precision,
    Run,
    Stopping,
    bound_time,
)
from runner import __version__
from runner.kubernetes.names import VariableName
from runner.sources import BUILTIN_FOLDER, list_builtin_matrices, read_git_revision, read_user_name
from runner.yaml_input import (
    PERCENT_PATTERN,
    Node,
    Value,
    YamlError,
    describe_found,
    join_words,
    quote,
    read_yaml,
    suggest_near_word,
    suggest_word,
    validate,
)

DEFAULT_REPEATS = 3
DEFAULT_TIMEOUT_SECONDS = 600.0
DEFAULT_MODES: dict[str, str] = {name: framework.modes[0] for name, framework in FRAMEWORKS.items()}
MAX_COMBINATIONS = 100_000
"""Combinations of axis values, those that `exclude` removes included."""
MAX_PLANNED_REPEATS = 1_000_000
"""Ten for each of 100,000 cells, the most that a run was measured with: every repeat is a Job, and a row in memory."""

CELL_KEYS = tuple(key for key in Cell.model_fields if key != "schema_version")
EXECUTION_KEYS = ("repeats", "timeout_seconds")
NEIGHBOUR_KEYS = tuple(Neighbour.model_fields)
TOP_KEYS = ("name", "description", "axes", "defaults", "exclude", "include", "neighbours", "environment")
_REQUIRED_KEYS = tuple(
    key for key, field in Cell.model_fields.items() if field.is_required() and key not in ("input_size", "num_classes")
)

Percent = Annotated[str, BeforeValidator(str), Field(pattern=PERCENT_PATTERN)]


class Repeats(BaseModel):
    """How many repeats a cell gets: `min`, or with a target as many up to `max` as its interval needs.

    `until`: of its step time; `until_ratio`: of its ratio to another cell that is measured until the same.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    min: Annotated[int, Field(ge=1, le=MAX_REPEATS)] = DEFAULT_REPEATS
    max: Annotated[int, Field(ge=1, le=MAX_REPEATS)] = 20
    until: Percent | None = None
    until_ratio: Percent | None = None

    @model_validator(mode="after")
    def check(self) -> Self:
        targets = [key for key in ("until", "until_ratio") if getattr(self, key) is not None]
        if len(targets) > 1 or ("max" in self.model_fields_set and not targets):
            raise ValueError("until: expected how wide the interval may be, such as 2%, or else 'until_ratio'")
        if targets and not 2 <= self.min <= self.max:
            raise ValueError(f"min: expected at least 2, which have a spread, and at most 'max' ({self.max})")
        if targets and not 1e-4 <= self.half_width < 1:
            raise ValueError(f"{targets[0]}: expected more than 0.01% and less than 100%")
        return self

    @property
    def half_width(self) -> float:
        """Of a cell's interval. Two cells that have it, the logs of both being less certain, give their ratio's."""
        share = float((self.until or self.until_ratio or "0%").rstrip(" %")) / 100
        return share if self.until else math.expm1(math.log1p(share) / math.sqrt(2))

    def describe(self) -> dict[str, Any]:
        """Return the fields of a PlannedCell."""
        is_open = self.until or self.until_ratio
        rule = Stopping(first=self.min, most=self.max, half_width=self.half_width) if is_open else None
        return {"repeats": self.min, "stopping": rule}


_FIELDS = {**Cell.model_fields, **PlannedCell.model_fields}
_TYPES: dict[str, Any] = {
    key: Annotated[_FIELDS[key].annotation, *_FIELDS[key].metadata, ""] for key in (*CELL_KEYS, *EXECUTION_KEYS)
}
# A file names a model, and a neighbour that it defines by itself.
_TYPES |= {"model": Literal[tuple(MODELS)], "neighbour": Name | None}
_TYPES["repeats"] = Annotated[
    Repeats,
    BeforeValidator(
        lambda found: found if isinstance(found, dict) else {"min": found},
        json_schema_input_type=_TYPES["repeats"] | Repeats,
    ),
]
_EXPECTED = "a matrix; give it at least the keys 'name' and 'axes'"
_STRICT = ConfigDict(strict=True, allow_inf_nan=False, extra="forbid")


def _make_part(name: str, keys: Iterable[str], wrap: Any = lambda one: one) -> Any:
    """Return the model of a mapping with these keys of a cell, all optional."""
    fields: dict[str, Any] = {key: (wrap(_TYPES[key]), None) for key in keys}
    return create_model(name, __config__=_STRICT, **fields)


def _list_values(one: Any) -> Any:
    return Annotated[list[one], Field(min_length=1)]


def _list_or_value(one: Any) -> Any:
    wrap = BeforeValidator(
        lambda found: found if isinstance(found, list) else [found], json_schema_input_type=one | _list_values(one)
    )
    return Annotated[_list_values(one), wrap]


_ENTRIES: Any = list[_make_part("Entry", (*CELL_KEYS, *EXECUTION_KEYS), _list_or_value)]  # type: ignore[misc]
_NEIGHBOURS: Any = dict[str, _make_part("Neighbour", NEIGHBOUR_KEYS)]  # type: ignore[misc]
_FILE = create_model(
    "MatrixFile",
    __config__=_STRICT,
    name=(Name, ...),
    description=(str, ""),
    axes=(_make_part("Axes", CELL_KEYS, _list_values), ...),
    defaults=(_make_part("Defaults", (*CELL_KEYS, *EXECUTION_KEYS)), None),
    exclude=(_ENTRIES, []),
    include=(_ENTRIES, []),
    neighbours=(_NEIGHBOURS, {}),
    environment=(dict[VariableName, str], {}),
)
MATRIX_FILE: TypeAdapter[Any] = TypeAdapter(_FILE)

Settings = Mapping[str, Node]
"""Keys of a cell with their values, each of which knows where in the file it stands."""


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A matrix file, expanded. `source`: the file, as shown to the user."""

    name: str
    description: str
    cells: tuple[PlannedCell, ...]
    source: str
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the measuring processes."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry of `exclude` or `include`: its values on axes, of which any fits, and its other keys."""

    on_axes: Mapping[str, Sequence[Node]]
    added: Settings
    node: Node

    @cached_property
    def _known(self) -> Mapping[str, Set[Value]]:
        return {axis: {node.value for node in nodes} for axis, nodes in self.on_axes.items()}

    def fits(self, settings: Settings) -> bool:
        for axis, values in self._known.items():  # noqa: SIM110  (all() takes three times as long, and 10^7 are asked)
            if settings[axis].value not in values:
                return False
        return True

    def list_combinations(self) -> Iterator[Settings]:
        """Yield every combination of one value per axis that it names, the last axis varying fastest."""
        for chosen in itertools.product(*self.on_axes.values()):
            yield dict(zip(self.on_axes, chosen, strict=True))


def load_matrix(name_or_path: str, *, is_data_here: bool = True) -> Matrix:
    """Return the matrix with this built-in name or in this file; UserError if it is unknown or has an error.

    `is_data_here`: whether a cell's `data_dir` must be a folder of this machine; on a cluster it is one of the pod's.
    """
    path = _find_matrix(name_or_path)
    return read_matrix(read_yaml(path, str(path), expected=_EXPECTED), path.parent if is_data_here else None)


def read_matrix(root: Node, folder: Path | None) -> Matrix:
    """Return the matrix in a file's tree: the product of the axes, less `exclude`, plus `include`.

    `folder`: where relative paths of data start; None: they are not of this machine. YamlError if something is wrong,
    or a combination lacks a key, contradicts itself, names a folder that does not exist, or is there already.
    """
    file = validate(root, MATRIX_FILE, "docs/matrix.md", keeps_null=True)
    parts = {key: root.children.get(key, replace(root, value=None)) for key in TOP_KEYS}
    axes = {key: [*node.children.values()] for key, node in parts["axes"].children.items()}
    _check_axes(axes, parts["axes"])
    for node in (node for key in ("exclude", "include", "neighbours") for node in parts[key].children.values()):
        if not node.children:
            raise node.error("found an empty entry, expected keys with values; fill it in or remove it")
    for key, node in parts["defaults"].children.items():
        if key in axes:
            raise node.error("is an axis already, which needs no default; remove it here or under 'axes'")
    exclude, include = (tuple(_read_entries(parts[key], axes)) for key in ("exclude", "include"))
    _check_excluded(exclude, axes)
    cells = tuple(_expand(_combine(axes, exclude, include, parts["axes"]), parts, folder))
    if not cells:
        message = "leave no cell: every combination of the axes is excluded; remove an 'exclude' entry"
        raise exclude[0].node.error(message, key="exclude")
    return Matrix(
        name=file.name,
        description=file.description.strip(),
        cells=cells,
        source=root.file,
        environment=file.environment,
    )


def _check_axes(axes: Mapping[str, Sequence[Node]], node: Node) -> None:
    if not axes:
        raise node.error("found no axis, expected at least one; write one under it, 'model: [conv6]' for example")
    for values in axes.values():
        first: dict[Value, Node] = {}
        for item in values:
            if item.value in first:
                found = f"found {describe_found(item)} again, first in line {first[item.value].line}"
                raise item.error(f"{found}; keep one of the two")
            first[item.value] = item
    lengths = [len(values) for values in axes.values()]
    if math.prod(lengths) > MAX_COMBINATIONS:
        product = f"{' x '.join(map(str, lengths))} values make {math.prod(lengths):,} combinations"
        raise node.error(f"{product}, expected at most {MAX_COMBINATIONS:,}; shorten an axis or split the matrix")


def _check_excluded(exclude: Iterable[Entry], axes: Mapping[str, Sequence[Node]]) -> None:
    known = {key: {item.value for item in values} for key, values in axes.items()}
    for entry in exclude:
        for node in entry.added.values():
            no_axis = "is not an axis of this matrix, so it matches no combination"
            raise node.error(f"{no_axis}; exclude by {', '.join(axes)}")
        for key, node in ((key, node) for key, nodes in entry.on_axes.items() for node in nodes):
            if node.value not in known[key]:
                values = join_words(item.value for item in axes[key])
                found = f"found {describe_found(node)}, which matches no combination"
                raise node.error(f"{found}; the axis '{key}' has {values}")


def _read_entries(part: Node, axes: Iterable[str]) -> Iterator[Entry]:
    for node in part.children.values():
        added = {key: child for key, child in node.children.items() if key not in axes}
        for child in added.values():
            if isinstance(child.value, list):
                raise child.error("found a list, expected one value: it is no axis of this matrix; write one value")
        named = {key: node.children[key] for key in axes if key in node.children}
        lists = {key: [*values.children.values()] or [values] for key, values in named.items()}
        yield Entry(on_axes=lists, added=added, node=node)


def _expand(
    combinations: Iterable[tuple[Settings, Node]], parts: Mapping[str, Node], folder: Path | None
) -> Iterator[PlannedCell]:
    seen: dict[str, tuple[Cell, Node]] = {}
    num_repeats = 0
    for settings, node in combinations:
        planned = _plan_cell(settings, node, parts, folder)
        num_repeats += planned.repeats if planned.stopping is None else planned.stopping.most
        if num_repeats > MAX_PLANNED_REPEATS:
            message = f"the first {len(seen) + 1:,} cells have more than {MAX_PLANNED_REPEATS:,} repeats, the limit"
            raise node.error(f"{message}; give fewer 'repeats', or split the matrix")
        cell_id = planned.cell.cell_id
        if cell_id in seen:
            raise _duplicate_error(planned.cell, node, *seen[cell_id])
        seen[cell_id] = planned.cell, node
        yield planned


def _combine(
    axes: Mapping[str, Sequence[Node]], exclude: Sequence[Entry], include: Sequence[Entry], node: Node
) -> Iterator[tuple[Settings, Node]]:
    """Yield combinations as GitHub Actions would, the last axis varying fastest, each with where it comes from.

    An `include` entry adds its other keys to every combination of the product that has its axis values; one that finds
    no such combination is a cell of its own. Axis values are never overwritten, added keys are, by later entries.
    """
    used: set[tuple[int, tuple[Value, ...]]] = set()
    for product in itertools.product(*axes.values()):
        settings = dict(zip(axes, product, strict=True))
        if any(entry.fits(settings) for entry in exclude):
            continue
        for number, entry in enumerate(include):
            if entry.fits(settings):
                used.add((number, tuple(settings[axis].value for axis in entry.on_axes)))
                settings |= entry.added
        yield settings, node
    for number, entry in enumerate(include):
        for own in entry.list_combinations():
            if (number, tuple(one.value for one in own.values())) not in used:
                yield {**own, **entry.added}, entry.node


def _plan_cell(own: Settings, place: Node, parts: Mapping[str, Node], folder: Path | None) -> PlannedCell:
    """Return the cell of a combination; `place`: where that comes from, `axes` or an `include` entry."""
    nodes = {**parts["defaults"].children, **own}
    _check_required(nodes, place)
    fields: dict[str, Any] = {key: node.value for key, node in nodes.items()}
    given = fields.pop("repeats", DEFAULT_REPEATS)
    rule = {key: one.value for key, one in given.items()} if isinstance(given, dict) else {"min": given}
    execution = Repeats.model_validate(rule).describe()
    execution["timeout_seconds"] = fields.pop("timeout_seconds", DEFAULT_TIMEOUT_SECONDS)
    spec = MODELS[fields["model"]]
    for key, is_unfit in (("num_classes", spec.num_classes is None), ("data_dir", spec.data is None)):
        if is_unfit and key not in own:  # under `defaults` it is meant for the other models
            fields.pop(key, None)
    sizes = {"input_size": spec.input_size, "num_classes": spec.num_classes}
    fields = sizes | {"mode": DEFAULT_MODES[fields["framework"]]} | fields
    if fields.get("data_dir") is not None:
        fields["data_dir"] = _find_data_dir(nodes["data_dir"], folder)
    if (name := fields.pop("neighbour", None)) is not None:
        known = parts["neighbours"].children
        if name not in known:
            hint = suggest_word(name, list(known)) if known else "the matrix defines none; add it there"
            raise nodes["neighbour"].error(f"found '{name}', expected a name under 'neighbours'; {hint}")
        given = {key: node.value for key, node in known[name].children.items()}
        fields["neighbour"] = _complete_neighbour(given, fields)
    try:
        cell = Cell.model_validate(fields)
    except ValidationError as error:  # its message begins with the key: `mode: ...`
        key, _, message = str(error.errors()[0]["ctx"]["error"]).partition(": ")
        shown = ", ".join(f"{name}={node.value}" for name, node in own.items())
        hint = "change it, exclude the combination, or give the value in an 'include' entry for the cells that it fits"
        raise nodes.get(key, place).error(f"{message} (in the cell {shown}); {hint}") from None
    return PlannedCell.model_validate({"cell": cell} | execution)


def _find_data_dir(node: Node, folder: Path | None) -> str:
    given = str(node.value)
    if folder is None:
        if not os.path.isabs(given):
            raise node.error(f"found {node.text!r}, expected a folder of the pod, as in /data/cifar-10")
        return given
    path = os.path.abspath(folder / os.path.expanduser(given))
    if not os.path.isdir(path):
        message = f"there is no folder {path!r}, expected one with data"
        raise node.error(f"{message}; a relative path starts at the matrix file's folder")
    return path


def _check_required(settings: Settings, place: Node) -> None:
    missing = ", ".join(f"'{key}'" for key in _REQUIRED_KEYS if key not in settings)
    if missing and place.key == "axes":
        raise place.error(f"cells lack {missing}; give each a value under 'axes' or 'defaults'")
    if missing:
        message = f"matches no combination of the axes, so it is a cell of its own, and that lacks {missing}"
        raise place.error(f"{message}; add what is missing, or fix the axis values")


def _duplicate_error(cell: Cell, node: Node, first_cell: Cell, first_node: Node) -> YamlError:
    if cell != first_cell:
        return node.error(f"gives the id {cell.cell_id} to two different cells, by chance; split the matrix")
    first = f"'{first_node.key}' in line {first_node.line}"
    return node.error(f"makes the cell {cell.cell_id} again, which {first} makes already; remove one of the two")


def _find_matrix(name_or_path: str) -> Path:
    builtin = list_builtin_matrices()
    if name_or_path in builtin:
        return BUILTIN_FOLDER / f"{name_or_path}.yaml"
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1 or os.path.exists(name_or_path):
        return path
    near = suggest_near_word(name_or_path, builtin)
    raise UserError(
        f"matrix {quote(name_or_path)}: is neither a built-in matrix nor a file; {near + ' Give' if near else 'give'} "
        f"the path of a YAML file, or a built-in name: {', '.join(builtin)}"
    )


def _complete_neighbour(given: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return every field of a neighbour of a cell with these `fields`: what is not given is the cell's.

    Of another model, the input size is that model's own, and so is the number of classes unless both models have
    classes.
    """
    of_cell = {key: fields.get(key, Cell.model_fields[key].default) for key in NEIGHBOUR_KEYS}
    model = str(given.get("model", of_cell["model"]))
    if model != of_cell["model"]:
        spec = MODELS[model]
        of_cell["input_size"] = spec.input_size
        if spec.num_classes is None or of_cell["num_classes"] is None:
            of_cell["num_classes"] = spec.num_classes
    return {**of_cell, **given}


RepeatKey = tuple[str, int]
"""Id of a cell and number of its repeat."""
TIME_FORMAT = "%Y%m%d-%H%M%S"
"""In the id of a run."""
SEED_BITS = 32
"""Length of the seed of a run's order: short enough to be copied by hand, long enough that no two runs share it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeat:
    """One planned repeat of a cell. A run may have 100,000 of them."""

    planned: PlannedCell
    number: int
    key: RepeatKey = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (self.planned.cell.cell_id, self.number))


def plan_run(
    matrix: Matrix, explain: Callable[[Cell], str | None], *, run_id: str | None, cluster: Cluster | None = None
) -> Run:
    """Return a new run: the cells that can run, and the others with the reason that `explain` gives.

    `cluster`: None for a run on this machine. Raise UserError if no cell can run, or if the clock is far off.
    """
    reasons = [explain(planned.cell) for planned in matrix.cells]
    if None not in reasons:
        all_reasons = "; ".join(dict.fromkeys(filter(None, reasons)))
        where = "here" if cluster is None else f"on {cluster.context}"
        raise UserError(
            f"{matrix.source}: no cell can run {where}: {all_reasons}; "
            "add cells to the matrix that can, with `device: cpu` for example"
        )
    explained = list(zip(matrix.cells, reasons, strict=True))
    now = datetime.now(UTC)
    if bound_time(now) != now:
        raise UserError(f"this machine's clock says {now.isoformat()}: set it; runs are ordered by their dates")
    return Run(
        run_id=run_id or f"{shorten_name(matrix.name)}-{now:{TIME_FORMAT}}-{secrets.token_hex(2)}",
        matrix=matrix.name,
        created_at=now,
        executor="local" if cluster is None else "kubernetes",
        cluster=cluster,
        hostname=socket.gethostname(),
        user=read_user_name(),
        tool_version=__version__,
        git_revision=read_git_revision(),
        cells=tuple(planned for planned, reason in explained if reason is None),
        left_out=tuple(
            LeftOutCell(cell=planned.cell, reason=reason) for planned, reason in explained if reason is not None
        ),
        order_seed=secrets.randbits(SEED_BITS),
        environment=dict(matrix.environment),
    )


def order_repeats(cells: Iterable[PlannedCell], seed: int | None) -> list[Repeat]:
    """Return all repeats in rounds, every cell's first, then every cell's second: a drift meets every cell alike.

    Within a round the order is drawn from `seed`, anew for each round: in one fixed order, a cell would always follow
    the same one, whose heat and caches it would always meet. None: the order of `cells`, as in runs planned before.
    """
    cells = tuple(cells)
    most = max(planned.repeats for planned in cells)
    rounds = (
        [Repeat(planned=planned, number=number) for planned in cells if number <= planned.repeats]
        for number in range(1, most + 1)
    )
    return [
        repeat
        for repeats in rounds
        for repeat in (repeats if seed is None else sorted(repeats, key=lambda repeat: _draw_place(repeat, seed)))
    ]


def _draw_place(repeat: Repeat, seed: int) -> bytes:
    """Return the place of a repeat in its round, as bytes to sort by.

    As a hash it is the same in every version of Python, and some cells keep the order that they have among all.
    """
    cell_id, number = repeat.key
    return hashlib.sha256(f"{seed} {number} {cell_id}".encode()).digest()


def shorten_name(matrix_name: str) -> str:
    """Return the part of a run's id that comes from the matrix: with time and number behind it, it fits into a Name."""
    return matrix_name[:40].rstrip("-")


ComputeCapability = tuple[int, int]

# CUDA C++ Programming Guide, table "Feature Support per Compute Capability": TF32 and bfloat16 came with Ampere,
# arithmetic on half-precision values with 5.3; products of float8 came with Ada.
MIN_CAPABILITY: dict[Precision, ComputeCapability] = {
    "tf32": (8, 0),
    "bf16": (8, 0),
    "fp16": (5, 3),
    "fp8": (8, 9),
    "int8-weights": (8, 0),
}
# Triton, which torch.compile makes its GPU kernels with, knows no older ones (torch._inductor.exc.GPUTooOldForTriton).
MIN_TRITON_CAPABILITY: ComputeCapability = (7, 0)

NO_GPU = "no NVIDIA GPU is visible on this machine"
NO_CPU_PRECISION: dict[Precision, str] = {
    "tf32": "tf32 is a mode of NVIDIA GPUs, a CPU has none; leave it to cells with device gpu",
    "fp16": "fp16 is for GPUs: hardly any CPU computes in it; take bf16 or fp32 on a CPU",
    **dict.fromkeys(EIGHT_BITS, "weights of eight bits are for GPUs; take bf16 or fp32 on a CPU"),
}


@dataclass(frozen=True, kw_only=True)
class GpuKind:
    """The GPUs that a machine has for a cell, all of one kind."""

    name: str
    """NVML's name of it, such as `Tesla T4`."""
    compute_capability: ComputeCapability
    """(7, 5) for a T4."""
    num_gpus: int
    memory_bytes: int | None = None
    """Of one of them; None: not known here."""


def explain_incapable(cell: Cell, gpu: GpuKind | None) -> str | None:
    """Return in one line why a machine with these GPUs (None: without any) cannot run `cell`; None if it can.

    Of memory only the least that a language model takes is held against the GPU's: its weights and its cache.
    """
    if cell.device == "cpu":
        return NO_CPU_PRECISION.get(cell.precision)
    if gpu is None:
        return NO_GPU
    if gpu.num_gpus < cell.num_gpus:
        return f"num_gpus is {cell.num_gpus}, and {gpu.num_gpus} {gpu.name} can be used together on this machine"
    needed = MIN_CAPABILITY.get(cell.precision)
    if needed is not None and gpu.compute_capability < needed:
        return _explain_too_old(cell.precision, needed, gpu)
    if (cell.framework, cell.mode) == ("pytorch", "compiled") and gpu.compute_capability < MIN_TRITON_CAPABILITY:
        return _explain_too_old("compiled PyTorch", MIN_TRITON_CAPABILITY, gpu)
    if (shape := DECODERS.get(cell.model)) and gpu.memory_bytes is not None:
        size = ELEMENT_BYTES[cell.precision]
        ends = shape.vocabulary_size * shape.width * (1 if shape.is_tied else 2)
        num_weights = shape.num_layers * shape.num_layer_weights + ends
        num_bytes = num_weights * (1 if cell.precision in EIGHT_BITS else size)
        num_bytes += shape.count_cached_values(cell.batch_size * cell.input_size) * size
        if num_bytes > gpu.memory_bytes:
            most = f"{gpu.name} has {gpu.memory_bytes / 1e9:.1f} GB; lower batch_size or input_size"
            return f"its weights and cache of keys and values take {num_bytes / 1e9:.1f} GB, and {most}"
    return None


def _explain_too_old(what: str, needed: ComputeCapability, gpu: GpuKind) -> str:
    major, minor = gpu.compute_capability
    return f"{what} needs a GPU of compute capability {needed[0]}.{needed[1]} or higher; {gpu.name} has {major}.{minor}"
