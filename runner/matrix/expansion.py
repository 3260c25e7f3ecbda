"""Load matrix files and expand them into planned cells."""

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.errors import UserError
from bench.registry import FRAMEWORKS, MODELS
from bench.schema import Cell, Neighbour, PlannedCell
from runner.matrix import BUILTIN_FOLDER, list_builtin_matrices
from runner.matrix.definition import EXECUTION_KEYS, NEIGHBOUR_KEYS, Entry, MatrixDefinition, Setting, read_definition
from runner.yaml_input import Node, Scalar, YamlError, quote, read_yaml, suggest_near_word, suggest_word

DEFAULT_REPEATS = 3
DEFAULT_TIMEOUT_SECONDS = 600.0
DEFAULT_MODES: dict[str, str] = {name: framework.modes[0] for name, framework in FRAMEWORKS.items()}

_REQUIRED_KEYS = tuple(
    key for key, field in Cell.model_fields.items() if field.is_required() and key not in ("input_size", "num_classes")
)

Settings = Mapping[str, Setting]


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A matrix file, expanded. `source`: the file, as shown to the user."""

    name: str
    description: str
    cells: tuple[PlannedCell, ...]
    source: str


MAX_PLANNED_REPEATS = 1_000_000
"""Ten for each of 100,000 cells, the most that a run was measured with: every repeat is a Job, and a row in memory."""


@dataclass(frozen=True, kw_only=True)
class _Combination:
    """Settings of one cell before the defaults, and where in the file it comes from: `axes` or an `include` entry."""

    settings: dict[str, Setting]
    node: Node


def load_matrix(name_or_path: str, *, is_data_here: bool = True) -> Matrix:
    """Return the matrix with this built-in name or in this file; UserError if it is unknown or has an error.

    `is_data_here`: whether a cell's `data_dir` must be a folder of this machine; on a cluster it is one of the pod's.
    """
    path = _find_matrix(name_or_path)
    source = _show_path(path)
    definition = read_definition(read_yaml(path, source))
    cells = tuple(expand_matrix(definition, path.parent, is_data_here=is_data_here))
    if not cells:
        message = "leave no cell: every combination of the axes is excluded; remove an 'exclude' entry"
        raise definition.exclude[0].node.error(message, key="exclude")
    return Matrix(name=definition.name, description=definition.description, cells=cells, source=source)


def expand_matrix(definition: MatrixDefinition, folder: Path, *, is_data_here: bool = True) -> Iterator[PlannedCell]:
    """Yield the cells: the product of the axes, less `exclude`, plus `include`; the last axis varies fastest.

    Relative paths are read from `folder`. YamlError if a combination lacks a key, contradicts itself, names a folder
    that does not exist, or is there already.
    """
    seen: dict[str, tuple[Cell, Node]] = {}
    num_repeats = 0
    for combination in _iter_combinations(definition):
        planned = _plan_cell(combination, definition, folder if is_data_here else None)
        num_repeats += planned.repeats
        if num_repeats > MAX_PLANNED_REPEATS:
            message = f"the first {len(seen) + 1:,} cells have more than {MAX_PLANNED_REPEATS:,} repeats, the limit"
            raise combination.node.error(f"{message}; give fewer 'repeats', or split the matrix")
        cell_id = planned.cell.cell_id
        if cell_id in seen:
            raise _duplicate_error(planned.cell, combination.node, *seen[cell_id])
        seen[cell_id] = planned.cell, combination.node
        yield planned


def _iter_combinations(definition: MatrixDefinition) -> Iterator[_Combination]:
    """Yield combinations as GitHub Actions would.

    An `include` entry adds its other keys to every combination of the product that has its axis values; one that finds
    no such combination is a cell of its own. Axis values are never overwritten, added keys are, by later entries.
    """
    excluded, included = _index_entries(definition.exclude), _index_entries(definition.include)
    used: set[int] = set()
    for product in itertools.product(*(axis.values() for axis in definition.axes.values())):
        settings = dict(zip(definition.axes, product, strict=True))
        if any(_find_entries(excluded, settings)):
            continue
        for number in sorted(itertools.chain.from_iterable(_find_entries(included, settings))):
            used.add(number)
            settings |= definition.include[number].added
        yield _Combination(settings=settings, node=definition.axes_node)
    for number, entry in enumerate(definition.include):
        if number not in used:
            yield _Combination(settings=entry.on_axes | entry.added, node=entry.node)


# By the axes that entries name, then by their values on these axes: the numbers of the entries.
_EntryIndex = dict[tuple[str, ...], dict[tuple[Scalar, ...], list[int]]]


def _index_entries(entries: Iterable[Entry]) -> _EntryIndex:
    """Index entries for look-up, so that expanding takes no longer with many entries on the same axes."""
    index: _EntryIndex = {}
    for number, entry in enumerate(entries):
        axes = tuple(sorted(entry.on_axes))
        values = tuple(entry.on_axes[axis].value for axis in axes)
        index.setdefault(axes, {}).setdefault(values, []).append(number)
    return index


def _find_entries(index: _EntryIndex, settings: Settings) -> Iterator[list[int]]:
    """Yield, for each set of axes that entries name, the numbers of the entries whose values are all in `settings`."""
    for axes, by_values in index.items():
        yield by_values.get(tuple(settings[axis].value for axis in axes), [])


def _plan_cell(combination: _Combination, definition: MatrixDefinition, folder: Path | None) -> PlannedCell:
    settings = {**definition.defaults, **combination.settings}
    _check_required(combination, settings)
    values = {key: setting.value for key, setting in settings.items()}
    neighbour = values.pop("neighbour", None)
    execution: dict[str, Scalar] = {"repeats": DEFAULT_REPEATS, "timeout_seconds": DEFAULT_TIMEOUT_SECONDS}
    execution |= {key: values.pop(key) for key in EXECUTION_KEYS if key in values}
    spec = MODELS[str(values["model"])]
    natural: dict[str, Scalar] = {
        "input_size": spec.input_size,
        "num_classes": spec.num_classes,
        "mode": DEFAULT_MODES[str(values["framework"])],
    }
    for key, is_unfit in (("num_classes", spec.num_classes is None), ("data_dir", spec.data is None)):
        if is_unfit and key not in combination.settings:  # under `defaults` it is meant for the other models
            values.pop(key, None)
    if values.get("data_dir") is not None:
        values["data_dir"] = _find_data_dir(settings["data_dir"], folder)
    fields: dict[str, Any] = natural | values
    if neighbour is not None:
        fields["neighbour"] = resolve_neighbour(settings["neighbour"], definition.neighbours, fields)
    try:
        cell = Cell.model_validate(fields)
    except ValidationError as error:
        raise _cell_error(error, combination, settings) from None
    return PlannedCell.model_validate({"cell": cell} | execution)


def _find_data_dir(setting: Setting, folder: Path | None) -> str:
    """Return the absolute path of a folder with data; YamlError if there is no such folder, or cannot be one.

    `folder`: where relative paths start; None: the folder is not of this machine.
    """
    if folder is None:
        if not os.path.isabs(str(setting.value)):
            message = f"found {setting.node.text!r}, expected a folder of the pod, as in /data/cifar-10"
            raise setting.node.error(message)
        return str(setting.value)
    path = os.path.abspath(folder / os.path.expanduser(str(setting.value)))
    if not os.path.isdir(path):
        message = (
            f"there is no folder {path!r}, expected one with data; a relative path starts at the matrix file's folder"
        )
        raise setting.node.error(message)
    return path


def _check_required(combination: _Combination, settings: Settings) -> None:
    missing = [key for key in _REQUIRED_KEYS if key not in settings]
    if not missing:
        return
    keys = ", ".join(f"'{key}'" for key in missing)
    if combination.node.key == "axes":
        message = f"cells lack {keys}; give each a value under 'axes' or 'defaults'"
        raise combination.node.error(message)
    message = f"matches no combination of the axes, so it is a cell of its own, and that lacks {keys}"
    hint = "add what is missing, or fix the axis values"
    raise combination.node.error(f"{message}; {hint}")


def _cell_error(error: ValidationError, combination: _Combination, settings: Settings) -> YamlError:
    """Point at the setting that a validator of Cell names at the start of its message (`mode: ...`)."""
    key, _, message = str(error.errors()[0]["ctx"]["error"]).partition(": ")
    node = settings[key].node if key in settings else combination.node
    cell = ", ".join(f"{name}={setting.value}" for name, setting in combination.settings.items())
    hint = "change it, exclude the combination, or give the value in an 'include' entry for the cells that it fits"
    return node.error(f"{message} (in the cell {cell}); {hint}")


def _duplicate_error(cell: Cell, node: Node, first_cell: Cell, first_node: Node) -> YamlError:
    if cell != first_cell:
        message = f"gives the id {cell.cell_id} to two different cells, by chance; split the matrix"
        return node.error(message)
    first = f"'{first_node.key}' in line {first_node.line}"
    message = f"makes the cell {cell.cell_id} again, which {first} makes already; remove one of the two"
    return node.error(message)


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


def _show_path(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, FileNotFoundError):  # elsewhere; or the working directory was deleted
        return str(path)


def resolve_neighbour(
    setting: Setting, definitions: Mapping[str, Mapping[str, Setting]], fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Return every field of the neighbour that a cell with these `fields` names; YamlError for an unknown name.

    What the definition does not give is the cell's; of another model, the input size is that model's own, and so is the
    number of classes unless both models have classes.
    """
    name = str(setting.value)
    if name not in definitions:
        message = f"found '{name}', expected a name under 'neighbours'"
        hint = suggest_word(name, list(definitions)) if definitions else "the matrix defines none; add it there"
        raise setting.node.error(f"{message}; {hint}")
    given = {key: found.value for key, found in definitions[name].items()}
    of_cell = {key: fields.get(key, Cell.model_fields[key].default) for key in NEIGHBOUR_KEYS}
    model = str(given.get("model", of_cell["model"]))
    if model != of_cell["model"]:
        spec = MODELS[model]
        of_cell["input_size"] = spec.input_size
        if spec.num_classes is None or of_cell["num_classes"] is None:
            of_cell["num_classes"] = spec.num_classes
    return of_cell | given


def name_neighbours(neighbours: Mapping[Neighbour, str]) -> dict[str, Any]:
    """Return `neighbours` of a matrix file in which each of these has its name."""
    return {name: neighbour.model_dump(mode="json") for neighbour, name in neighbours.items()}
