"""The keys that cells of a matrix file take, and the check of a single value."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, TypeAdapter

from bench.registry import MODELS
from bench.schema import Cell, Document, Name, Neighbour, PlannedCell
from runner.yaml_files.node import Node, Scalar
from runner.yaml_files.validation import NodeValidator

CELL_KEYS = tuple(key for key in Cell.model_fields if key != "schema_version")
EXECUTION_KEYS = tuple(key for key in PlannedCell.model_fields if key != "cell")
NEIGHBOUR_KEYS = tuple(Neighbour.model_fields)

_STRICT = ConfigDict(strict=True, allow_inf_nan=False)


def read_value(key: str, node: Node) -> Scalar:
    """Return the value for a key of a cell or of its execution; YamlError if the key does not take it."""
    value: Scalar = _VALIDATORS[key].validate(node)
    return value


def read_name(node: Node) -> str:
    """Return the name of a matrix; YamlError if it cannot be one."""
    name: str = _NAME.validate(node)
    return name


def read_text(node: Node) -> str:
    """Return a text for people; YamlError if the value is none."""
    text: str = _TEXT.validate(node)
    return text


def find_annotation(document: type[Document], key: str) -> Any:
    """Return the type of the values that a file gives for a key of a cell or of its execution.

    A file names a model, and a neighbour that it defines by itself.
    """
    info = document.model_fields[key]
    named: dict[str, Any] = {"model": Literal[tuple(MODELS)], "neighbour": Name | None}
    return named.get(key, Annotated[info.annotation, info])


def _make_validator(document: type[Document], key: str) -> NodeValidator[Any]:
    return NodeValidator(TypeAdapter(find_annotation(document, key), config=_STRICT))


_VALIDATORS = {key: _make_validator(Cell, key) for key in CELL_KEYS}
_VALIDATORS |= {key: _make_validator(PlannedCell, key) for key in EXECUTION_KEYS}
_NAME: NodeValidator[str] = NodeValidator(TypeAdapter(Name, config=_STRICT))
_TEXT: NodeValidator[str] = NodeValidator(TypeAdapter(str, config=_STRICT))
