"""Prints facts about the definitions of the models in one dialect as JSON: shapes and dropouts.

Argument: `torch` or `keras`.
"""

import json
import sys
from typing import Any

from bench.models import build_model
from bench.registry import MODELS
from bench.schema import Cell
from bench.tasks.inputs import make_inputs
from factories import make_cell

DIALECT: Any = sys.argv[1]
give_inputs: Any
dropout: Any

if DIALECT == "torch":
    import torch

    torch.set_default_device("meta")  # shapes alone: test_mirrors.py computes
    dropout, give_inputs = torch.nn.Dropout, lambda cell: [torch.tensor(one) for one in make_inputs(cell)]
else:
    from bench.frameworks import tensorflow  # noqa: F401  chooses Keras's backend

    # isort: split
    import keras
    from mirror_layers import skip_drawing

    from bench.tasks.keras import prepare_inputs

    dropout, give_inputs = keras.layers.Dropout, prepare_inputs
    skip_drawing(keras.initializers)


def make_model_cell(model: str, input_size: int, num_classes: int | None) -> Cell:
    """Return a cell of the model, in the phase that it has."""
    kind: dict[str, Any] = {} if DIALECT == "torch" else {"framework": "jax", "mode": "compiled"}
    phase = MODELS[model].phases[0]
    return make_cell(model=model, phase=phase, batch_size=2, input_size=input_size, num_classes=num_classes, **kind)


def run_networks(model: str, size: int) -> list[tuple[Any, Any]]:
    """Return what each network makes of inputs of this size, and the network."""
    spec = MODELS[model]
    cell = make_model_cell(model, size, spec.num_classes)
    inputs = give_inputs(cell)
    built = build_model(cell, DIALECT)
    networks = built.values() if spec.task == "image-translation" else [built]
    arguments = inputs if spec.task == "matrix-product" else inputs[:1]
    return [(network(*arguments), network) for network in networks]


def list_output_shapes(model: str) -> list[list[list[int]]]:
    """Return the shapes of what each network makes of inputs of the two smallest sizes, channels first."""
    spec = MODELS[model]
    shapes = []
    for size in (spec.min_input_size, spec.min_input_size + spec.input_size_multiple):
        found = [list(output.shape) for output, _ in run_networks(model, size)]
        is_last = DIALECT == "keras"
        shapes.append([[one[0], one[3], *one[1:3]] if is_last and len(one) == 4 else one for one in found])
    return shapes


def list_dropouts() -> list[float]:
    """Return the rates of VGG16's dropouts."""
    ((_, model),) = run_networks("vgg16", 32)
    if DIALECT == "torch":
        return [module.p for module in model.modules() if isinstance(module, dropout)]
    return [layer.rate for layer in model.layers if isinstance(layer, dropout)]


# Of the models that share a definition, the smallest.
BUILT = {spec.definition or model: model for model, spec in reversed(MODELS.items())}.values()
facts = {"shapes": {model: list_output_shapes(model) for model in BUILT}, "dropouts": list_dropouts()}
print(json.dumps(facts))
