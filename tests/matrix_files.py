"""Matrix files of tests: a small matrix, and ways to change, expand and load it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.schema import PlannedCell
from runner.matrix import load_matrix, read_matrix
from runner.yaml_input import YamlError, parse_yaml

DEMO = """\
name: demo
axes:
  model: [conv6]
  framework: [pytorch, tensorflow]
  device: [cpu]
  phase: [train, infer]
defaults: {batch_size: 16}
"""
OWN_CELL = "- {model: conv6, framework: pytorch, device: gpu, phase: train}\n"
"""An entry of `include` that matches no combination of DEMO."""


def expand(text: str) -> list[PlannedCell]:
    return list(read_matrix(parse_yaml(text.encode(), "demo.yaml", expected="a matrix"), Path("/matrices")).cells)


def expand_or_refuse(text: str) -> list[PlannedCell] | str:
    """Return the cells of a matrix, or the message that says why it has none."""
    try:
        return expand(text)
    except UserError as error:
        return str(error)


def pick(cells: list[PlannedCell] | tuple[PlannedCell, ...], *keys: str) -> list[tuple[Any, ...]]:
    """Return the values of some keys of every cell."""
    return [
        tuple(getattr(planned if key in PlannedCell.model_fields else planned.cell, key) for key in keys)
        for planned in cells
    ]


def write(folder: Path, text: str) -> Path:
    """Write a matrix file and return its path."""
    path = folder / "demo.yaml"
    path.write_text(text)
    return path


def swap(old: str, new: str) -> str:
    """Return DEMO with a part of it replaced."""
    assert old in DEMO
    return DEMO.replace(old, new)


def catch_error(folder: Path, text: str, load: Callable[[str], object] = load_matrix) -> YamlError:
    with pytest.raises(YamlError) as caught:
        load(str(write(folder, text)))
    return caught.value
