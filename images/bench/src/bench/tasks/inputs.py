"""Draws a cell's synthetic inputs as NumPy arrays, the same ones for every framework."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.registry import DECODERS, MODELS
from bench.schema import Cell

# Token ids of the synthetic texts are below this; bench.models.*.text_classifier embed as many.
VOCABULARY_SIZE = 20_000

Arrays = tuple[NDArray[Any], ...]


def make_inputs(cell: Cell) -> Arrays:
    """Return one batch for the cell's task, drawn from its seed.

    Image classification: images (batch, 3, size, size) of standard normal float32 and labels (batch,) below
    `num_classes`. Text classification: tokens (batch, size) below VOCABULARY_SIZE and labels. Image translation: images
    of both domains, uniform in [-1, 1]. Matrix product: two stacks (batch, size, size) of standard normal float32. Text
    generation: tokens (batch, size) of a prompt, or (batch, 1) in decoding.
    """
    rng = np.random.default_rng(cell.seed)
    match MODELS[cell.model].task:
        case "image-classification":
            images = rng.standard_normal((cell.batch_size, 3, cell.input_size, cell.input_size), dtype=np.float32)
            return images, _draw_labels(cell, rng)
        case "text-classification":
            return rng.integers(0, VOCABULARY_SIZE, (cell.batch_size, cell.input_size)), _draw_labels(cell, rng)
        case "image-translation":
            shape = (cell.batch_size, 3, cell.input_size, cell.input_size)
            return tuple(2 * rng.random(shape, dtype=np.float32) - 1 for _ in range(2))
        case "matrix-product":
            stack = (cell.batch_size, cell.input_size, cell.input_size)
            return tuple(rng.standard_normal(stack, dtype=np.float32) for _ in range(2))
        case "text-generation":
            num_tokens = cell.input_size - find_position(cell)
            return (rng.integers(0, DECODERS[cell.model].vocabulary_size, (cell.batch_size, num_tokens)),)


def find_position(cell: Cell) -> int:
    """Return the position of a step's first token: 0 of a prefill, the last one of the context in decoding."""
    return 0 if cell.phase == "prefill" else cell.input_size - 1


def _draw_labels(cell: Cell, rng: np.random.Generator) -> NDArray[np.int64]:
    assert cell.num_classes is not None
    return rng.integers(0, cell.num_classes, cell.batch_size)
