"""Builds the model of a cell in a framework's own dialect: a function per model and dialect."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from bench.registry import MODELS, Dialect, name_definition
from bench.schema import Cell


def build_model(cell: Cell, dialect: Dialect) -> Any:
    """Return the cell's model in `dialect` ("torch": nn.Module, "keras": keras.Model), freshly initialised.

    CycleGAN: an nn.ModuleDict or a dict of keras.Models. Inputs and outputs are those of the definition; images are
    (batch, 3, size, size) for torch and (batch, size, size, 3) for keras, logits (batch, num_classes).
    """
    return find_definition(cell, dialect)(cell)


def find_definition(cell: Cell, dialect: Dialect) -> Callable[[Cell], Any]:
    """Return the function of the cell's model in a dialect; ImportError or AttributeError where a plugin has none."""
    module = import_module(f"{MODELS[cell.model].package}.{dialect}")
    found: Callable[[Cell], Any] = getattr(module, name_definition(cell.model, dialect))
    return found
