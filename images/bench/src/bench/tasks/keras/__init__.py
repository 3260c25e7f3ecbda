"""Builds a cell's task in Keras 3, for TensorFlow and JAX: networks, training parts and inference."""

from bench.models import build_model
from bench.registry import MODELS
from bench.schema import Cell
from bench.tasks.keras.classification import Classification
from bench.tasks.keras.image_translation import ImageTranslation
from bench.tasks.keras.interface import Part, Task
from bench.tasks.keras.matrix_product import MatrixProduct

__all__ = ["Part", "Task", "build_task"]


def build_task(cell: Cell) -> Task:
    """Return the cell's task with freshly initialised networks.

    They are created on Keras's current device, in the types that `set_precision` set.
    """
    definition = build_model(cell, "keras")
    match MODELS[cell.model].task:
        case "image-classification" | "text-classification":
            return Classification(definition)
        case "image-translation":
            return ImageTranslation(definition, image_size=cell.input_size, seed=cell.seed)
        case "matrix-product":
            return MatrixProduct(definition)
