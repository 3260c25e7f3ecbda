"""The models: a Cell in, a model of the framework's own kind out. One file per model and dialect."""

from importlib import import_module
from typing import Any

from bench.catalog import MODELS, Definition
from bench.schema import Cell


def build_model(cell: Cell, definition: Definition) -> Any:
    """Return the cell's model in the dialect `definition` ("torch": nn.Module, "keras": keras.Model), weights seeded.

    Input: (batch, 3, size, size) for torch, (batch, size, size, 3) for keras; output: logits (batch, num_classes).
    """
    return import_module(MODELS[cell.model].definitions[definition]).build(cell)
