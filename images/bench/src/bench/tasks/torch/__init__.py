"""Builds a cell's task in PyTorch: networks, training parts and inference."""

from bench.models import build_model
from bench.registry import MODELS
from bench.schema import Cell
from bench.tasks.torch.classification import Classification
from bench.tasks.torch.image_translation import ImageTranslation
from bench.tasks.torch.interface import Part, Task
from bench.tasks.torch.matrix_product import MatrixProduct

__all__ = ["Part", "Task", "build_task"]


def build_task(cell: Cell) -> Task:
    """Return the cell's task with freshly initialised networks on the CPU, in float32."""
    definition = build_model(cell, "torch")
    match MODELS[cell.model].task:
        case "image-classification" | "text-classification":
            return Classification(definition)
        case "image-translation":
            return ImageTranslation(definition, image_size=cell.input_size)
        case "matrix-product":
            return MatrixProduct(definition)
