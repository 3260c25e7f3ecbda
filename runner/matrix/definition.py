"""Read the definition of a matrix from its file's tree: every key known, every value valid by itself."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, TypeAdapter

from bench.registry import MODELS
from bench.schema import Cell, Name, Neighbour, PlannedCell
from runner.yaml_input import Node, NodeValidator, Scalar, describe_found, join_words, quote, unknown_key_error

MAX_COMBINATIONS = 100_000
"""Combinations of axis values, those that `exclude` removes included."""

CELL_KEYS = tuple(key for key in Cell.model_fields if key != "schema_version")
EXECUTION_KEYS = tuple(key for key in PlannedCell.model_fields if key != "cell")
NEIGHBOUR_KEYS = tuple(Neighbour.model_fields)

TOP_KEYS = ("name", "description", "axes", "defaults", "exclude", "include", "neighbours")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One checked value of a key, and where it stands."""

    value: Scalar
    node: Node


Axis = dict[Scalar, Setting]
"""The values of an axis in the order of the file; each value leads to its setting."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry of `exclude` or `include`: its keys that are axes, and the others.

    One with lists of axis values in the file becomes as many entries as the lists have combinations.
    """

    on_axes: dict[str, Setting]
    added: dict[str, Setting]
    node: Node


@dataclass(frozen=True, kw_only=True)
class MatrixDefinition:
    """A matrix before it is expanded; every value is valid by itself, their combinations are not checked yet."""

    name: str
    description: str
    axes: dict[str, Axis]
    defaults: dict[str, Setting]
    exclude: tuple[Entry, ...]
    include: tuple[Entry, ...]
    neighbours: dict[str, dict[str, Setting]]
    """What `neighbour` can name: for each name the fields in which the other tenants differ."""
    axes_node: Node
    """Where `axes` stands."""


def read_definition(root: Node) -> MatrixDefinition:
    """Return the definition in a matrix file's tree; YamlError for the first error found in it."""
    no_top = "is no key of the top level; put it under"
    below = dict.fromkeys(CELL_KEYS, f"{no_top} 'axes' or 'defaults'")
    top = _read_mapping(root, TOP_KEYS, below | dict.fromkeys(EXECUTION_KEYS, f"{no_top} 'defaults'"))
    for key in ("name", "axes"):
        if key not in top:
            raise root.error("the key is missing, expected in every matrix; add it", key=key)
    axes = _read_axes(top["axes"])
    return MatrixDefinition(
        name=_VALIDATORS["name"].validate(top["name"]),
        description=_VALIDATORS["description"].validate(top["description"]).strip() if "description" in top else "",
        axes=axes,
        defaults=_read_defaults(top["defaults"], axes) if "defaults" in top else {},
        exclude=tuple(entry for item in _read_list(top.get("exclude")) for entry in _read_exclude(item, axes)),
        include=tuple(entry for item in _read_list(top.get("include")) for entry in _read_include(item, axes)),
        neighbours=_read_neighbours(top["neighbours"]) if "neighbours" in top else {},
        axes_node=top["axes"],
    )


def _read_axes(node: Node) -> dict[str, Axis]:
    no_axis = dict.fromkeys(EXECUTION_KEYS, "cannot be an axis; put it under 'defaults' or 'include'")
    entries = _read_mapping(node, CELL_KEYS, no_axis)
    if not entries:
        raise node.error("found no axis, expected at least one; write one under it, 'model: [conv6]' for example")
    axes = {key: _read_axis(key, values) for key, values in entries.items()}
    lengths = [len(settings) for settings in axes.values()]
    if math.prod(lengths) > MAX_COMBINATIONS:
        product = f"{' x '.join(map(str, lengths))} values make {math.prod(lengths):,} combinations"
        raise node.error(
            f"{product}, expected at most {MAX_COMBINATIONS:,}; shorten an axis or split the matrix",
        )
    return axes


def _read_axis(key: str, node: Node) -> Axis:
    if not isinstance(node.value, list):
        hint = f"write '{key}: [{quote(node.text)[1:-1] or '...'}]'"
        raise node.error(f"found {describe_found(node)}, expected a list of values; {hint}")
    if not node.value:
        raise node.error("found an empty list, expected at least one value; add one or remove the key")
    settings: Axis = {}
    for item in node.value:
        setting = _read_setting(key, item)
        if setting.value in settings:
            first = settings[setting.value].node.line
            message = f"found {describe_found(item)} again, first in line {first}; keep one of the two"
            raise item.error(message)
        settings[setting.value] = setting
    return settings


def _read_setting(key: str, node: Node) -> Setting:
    return Setting(value=_VALIDATORS[key].validate(node), node=node)


def _read_defaults(node: Node, axes: Mapping[str, Axis]) -> dict[str, Setting]:
    is_axis = dict.fromkeys(axes, "is an axis already, which needs no default; remove it here or under 'axes'")
    entries = _read_mapping(node, [key for key in (*CELL_KEYS, *EXECUTION_KEYS) if key not in axes], is_axis)
    return {key: _read_setting(key, value) for key, value in entries.items()}


def _read_exclude(node: Node, axes: Mapping[str, Axis]) -> Iterator[Entry]:
    no_axis = f"is not an axis of this matrix, so it matches no combination; exclude by {', '.join(axes)}"
    values = _read_mapping(node, list(axes), dict.fromkeys((*CELL_KEYS, *EXECUTION_KEYS), no_axis))
    if not values:
        raise node.error(f"found an empty entry, expected axis values to leave out; name some of {', '.join(axes)}")
    chosen = {key: _read_choice(key, value) for key, value in values.items()}
    for key, settings in chosen.items():
        for value, setting in settings.items():
            if value not in axes[key]:
                found = f"found {describe_found(setting.node)}, which matches no combination"
                raise setting.node.error(f"{found}; the axis '{key}' has {join_words(axes[key])}")
    yield from _combine(chosen, {}, node)


def _read_include(node: Node, axes: Mapping[str, Axis]) -> Iterator[Entry]:
    values = _read_mapping(node, [*CELL_KEYS, *EXECUTION_KEYS], {})
    if not values:
        raise node.error("found an empty entry, expected keys to add or a whole cell; fill it in or remove it")
    chosen = {key: _read_choice(key, values[key]) for key in axes if key in values}
    added = {key: _read_setting(key, value) for key, value in values.items() if key not in axes}
    yield from _combine(chosen, added, node)


def _read_neighbours(node: Node) -> dict[str, dict[str, Setting]]:
    """Return what each name stands for: those keys of a cell that it gives."""
    if not isinstance(node.value, dict):
        message = f"found {describe_found(node)}, expected names, each with what such a neighbour runs"
        raise node.error(f"{message}; write 'serving: {{phase: infer, batch_size: 1}}' under it")
    of_the_cell = dict.fromkeys(
        [key for key in (*CELL_KEYS, *EXECUTION_KEYS) if key not in NEIGHBOUR_KEYS],
        f"is the same for all tenants of a cell; a neighbour may differ in {', '.join(NEIGHBOUR_KEYS)}",
    )
    found = {}
    for name, child in node.value.items():
        entries = _read_mapping(child, NEIGHBOUR_KEYS, of_the_cell)
        if not entries:
            raise child.error(f"found an empty neighbour, expected what differs; name some of {NEIGHBOUR_KEYS}")
        found[name] = {key: _read_setting(key, value) for key, value in entries.items()}
    return found


def _read_choice(key: str, node: Node) -> Axis:
    """Return the values that an entry names of an axis: those of a list, or the one that stands there."""
    if isinstance(node.value, list):
        return _read_axis(key, node)
    setting = _read_setting(key, node)
    return {setting.value: setting}


def _combine(chosen: Mapping[str, Axis], added: dict[str, Setting], node: Node) -> Iterator[Entry]:
    """Yield an entry for every combination of one setting per axis, the last axis varying fastest; one for no axis."""
    for settings in itertools.product(*(values.values() for values in chosen.values())):
        yield Entry(on_axes=dict(zip(chosen, settings, strict=True)), added=added, node=node)


def _read_mapping(node: Node, known: Sequence[str], misplaced: Mapping[str, str]) -> dict[str, Node]:
    """Return the entries of a mapping. `misplaced`: for keys that have their place elsewhere, what to say."""
    if not isinstance(node.value, dict):
        message = f"found {describe_found(node)}, expected keys with values; write them as 'key: value'"
        raise node.error(message)
    for key, child in node.value.items():
        if key in known:
            continue
        if key in misplaced:
            raise child.error(misplaced[key])
        raise unknown_key_error(child, key, list(known))
    return node.value


def _read_list(node: Node | None) -> list[Node]:
    if node is None:
        return []
    if not isinstance(node.value, list):
        hint = "write '- ' before each entry, or remove the key"
        raise node.error(f"found {describe_found(node)}, expected a list of entries; {hint}")
    return node.value


def _make_validator(annotation: Any) -> NodeValidator[Any]:
    return NodeValidator(TypeAdapter(annotation, config=ConfigDict(strict=True, allow_inf_nan=False)))


# A file names a model, and a neighbour that it defines by itself.
_NAMED: dict[str, Any] = {"model": Literal[tuple(MODELS)], "neighbour": Name | None, "name": Name, "description": str}
_FIELDS = {**Cell.model_fields, **PlannedCell.model_fields}
_VALIDATORS = {
    key: _make_validator(_NAMED.get(key) or Annotated[_FIELDS[key].annotation, _FIELDS[key]])
    for key in (*CELL_KEYS, *EXECUTION_KEYS, *_NAMED)
}
