"""Prints facts about Keras's definitions of the models as JSON: parameters, shapes, types.

Its argument is a JSON list of (model, input size, classes).
"""

import json
import math
import sys
from typing import Any

from bench.frameworks import tensorflow  # noqa: F401  chooses Keras's backend

# isort: split
import keras
import numpy as np
from mirror_layers import skip_drawing

from bench.models import build_model
from bench.registry import MODELS
from bench.schema import Cell
from bench.tasks.keras import prepare_inputs
from factories import make_cell

POLICIES = ("float32", "float16", "mixed_float16", "bfloat16", "mixed_bfloat16")


def make_model_cell(model: str, input_size: int, num_classes: int | None) -> Cell:
    """Return a cell of the model, in the phase that it has."""
    fields = {"framework": "tensorflow", "phase": MODELS[model].phases[0], "batch_size": 2}
    return make_cell(model=model, input_size=input_size, num_classes=num_classes, **fields)


def build_networks(cell: Cell) -> list[Any]:
    """Return the model's networks."""
    built = build_model(cell, "keras")
    return list(built.values()) if isinstance(built, dict) else [built]


def count_parameters(cell: Cell) -> list[int]:
    """Return the number of trainable parameters of each network, without allocating them."""
    with keras.StatelessScope(initialize_variables=False):
        networks = build_networks(cell)
    numbers = [sum(math.prod(variable.shape) for variable in net.trainable_variables) for net in networks]
    keras.utils.clear_session()  # it would allocate them later
    return numbers


def run_networks(model: str, size: int) -> list[tuple[Any, Any]]:
    """Return what each network makes of inputs of this size, and the network."""
    spec = MODELS[model]
    cell = make_model_cell(model, size, spec.num_classes)
    inputs = prepare_inputs(cell)
    arguments = inputs if spec.task == "matrix-product" else inputs[:1]
    return [(network(*arguments), network) for network in build_networks(cell)]


def list_output_shapes(model: str) -> list[list[list[int]]]:
    """Return the shapes of what each network makes of inputs of the two smallest sizes, channels first."""
    spec = MODELS[model]
    shapes = []
    for size in (spec.min_input_size, spec.min_input_size + spec.input_size_multiple):
        outputs = [np.asarray(output) for output, _ in run_networks(model, size)]
        shapes.append(
            [list(np.moveaxis(output, -1, 1).shape if output.ndim == 4 else output.shape) for output in outputs]
        )
    return shapes


def list_types(model: str, policy: str) -> list[str]:
    """Return the types of the outputs and of the variables under a dtype policy."""
    keras.config.set_dtype_policy(policy)
    runs = run_networks(model, MODELS[model].min_input_size)
    keras.config.set_dtype_policy("float32")
    outputs = {output.dtype.name for output, _ in runs}
    return [
        *sorted(outputs),
        *sorted({variable.dtype for _, network in runs for variable in network.trainable_variables}),
    ]


def list_dropouts() -> list[float]:
    """Return the rates of VGG16's dropouts."""
    (model,) = build_networks(make_model_cell("vgg16", 32, 10))
    return [layer.rate for layer in model.layers if isinstance(layer, keras.layers.Dropout)]


def pool_squares(sides: range) -> list[Any]:
    """Return 0, 1, 2, ... in squares of these sides, averaged to 7 x 7 as VGG16 does."""
    pool = keras.layers.AdaptiveAveragePooling2D(7)
    squares = (np.arange(side**2, dtype=np.float32).reshape(1, side, side, 1) for side in sides)
    return [np.asarray(pool(square)).ravel().tolist() for square in squares]


if __name__ == "__main__":
    skip_drawing(keras.initializers)
    facts = {
        "parameters": [count_parameters(make_model_cell(*arguments)) for arguments in json.loads(sys.argv[1])],
        "shapes": {model: list_output_shapes(model) for model in MODELS},
        "types": {model: {policy: list_types(model, policy) for policy in POLICIES} for model in MODELS},
        "dropouts": list_dropouts(),
        "pooled": pool_squares(range(1, 17)),
    }
    print(json.dumps(facts))
