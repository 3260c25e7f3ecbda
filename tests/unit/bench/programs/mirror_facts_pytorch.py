"""Prints facts about PyTorch's definitions of the models as JSON: parameters, shapes, dropouts.

Its argument is a JSON list of (model, input size, classes).
"""

import json
import sys
from typing import Any

import torch
from torch.nn.functional import adaptive_avg_pool2d

from bench.models import build_model
from bench.registry import MODELS
from bench.schema import Cell
from bench.tasks.inputs import make_inputs
from factories import make_cell


def make_model_cell(model: str, input_size: int, num_classes: int | None) -> Cell:
    """Return a cell of the model, in the phase that it has."""
    phase = MODELS[model].phases[0]
    return make_cell(model=model, phase=phase, batch_size=2, input_size=input_size, num_classes=num_classes)


def build_networks(cell: Cell) -> list[Any]:
    """Return the model's networks."""
    built = build_model(cell, "torch")
    return list(built.values()) if isinstance(built, torch.nn.ModuleDict) else [built]


def count_parameters(cell: Cell) -> list[int]:
    """Return the number of trainable parameters of each network, without allocating them."""
    with torch.device("meta"):
        networks = build_networks(cell)
    return [sum(parameter.numel() for parameter in network.parameters()) for network in networks]


def list_output_shapes(model: str) -> list[list[list[int]]]:
    """Return the shapes of what each network makes of inputs of the two smallest sizes."""
    spec = MODELS[model]
    shapes = []
    for size in (spec.min_input_size, spec.min_input_size + spec.input_size_multiple):
        cell = make_model_cell(model, size, spec.num_classes)
        inputs = tuple(torch.from_numpy(array) for array in make_inputs(cell))
        arguments = inputs if spec.task == "matrix-product" else inputs[:1]
        shapes.append([list(network(*arguments).shape) for network in build_networks(cell)])
    return shapes


def list_dropouts() -> list[float]:
    """Return the rates of VGG16's dropouts.

    Its argument is a JSON list of (model, input size, classes).
    """
    with torch.device("meta"):
        (model,) = build_networks(make_model_cell("vgg16", 32, 10))
    return [module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)]


def pool_squares(sides: range) -> list[Any]:
    """Return 0, 1, 2, ... in squares of these sides, averaged to 7 x 7 as VGG16 does."""
    squares = (torch.arange(float(side**2)).reshape(1, 1, side, side) for side in sides)
    return [adaptive_avg_pool2d(square, 7).flatten().tolist() for square in squares]


if __name__ == "__main__":
    facts = {
        "parameters": [count_parameters(make_model_cell(*arguments)) for arguments in json.loads(sys.argv[1])],
        "shapes": {model: list_output_shapes(model) for model in MODELS},
        "dropouts": list_dropouts(),
        "pooled": pool_squares(range(1, 17)),
    }
    print(json.dumps(facts))
