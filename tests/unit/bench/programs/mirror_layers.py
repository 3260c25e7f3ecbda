"""Models of either framework in, their layers' tensors out (and back), in one order and in PyTorch's layout.

Names are `conv0.weight`, `norm3.mean`, `dense1.bias`, ...: the kind, the number within the kind in the order in which
the Keras definition creates its layers, and the tensor.
"""

from typing import Any

import numpy as np

NORM_TENSORS = ("weight", "bias", "mean", "variance")


def list_torch_layers(model: Any) -> dict[str, list[Any]]:
    """Return the convolutions, norms and dense layers, the shortcut of a block before its two convolutions."""
    if not hasattr(model, "layer1"):
        return _sort_torch_layers(list(model))
    layers = [model.conv1, model.bn1]
    for stage in (model.layer1, model.layer2, model.layer3, model.layer4):
        for block in stage:
            layers += list(block.downsample or ())
            layers += [block.conv1, block.bn1, block.conv2, block.bn2]
    return _sort_torch_layers([*layers, model.fc])


def _sort_torch_layers(layers: list[Any]) -> dict[str, list[Any]]:
    kinds = {"Conv2d": "conv", "BatchNorm2d": "norm", "Linear": "dense"}
    found: dict[str, list[Any]] = {"conv": [], "norm": [], "dense": []}
    for layer in layers:
        if type(layer).__name__ in kinds:
            found[kinds[type(layer).__name__]].append(layer)
    return found


def name_torch_tensors(model: Any, *, gradients: bool = False) -> dict[str, Any]:
    """Return the model's tensors by name: parameters and running statistics, or the gradients of the parameters."""
    tensors = {}
    for kind, layers in list_torch_layers(model).items():
        for number, layer in enumerate(layers):
            for name, parameter in layer.named_parameters():
                tensors[f"{kind}{number}.{name}"] = parameter.grad if gradients else parameter
            if kind == "norm" and not gradients:
                tensors[f"norm{number}.mean"] = layer.running_mean
                tensors[f"norm{number}.variance"] = layer.running_var
    return tensors


def name_keras_variables(model: Any) -> dict[str, Any]:
    """Return the model's variables by name, in Keras's own layout."""
    kinds = {"conv2d": "conv", "batch_normalization": "norm", "dense": "dense"}
    found: dict[str, list[Any]] = {kind: [] for kind in kinds.values()}
    for layer in sorted(model.layers, key=_read_creation_number):
        base = layer.name.rstrip("0123456789").rstrip("_")
        if base in kinds:
            found[kinds[base]].append(layer)
    variables = {}
    for kind, layers in found.items():
        for number, layer in enumerate(layers):
            names = NORM_TENSORS if kind == "norm" else ("weight", "bias")
            for name, variable in zip(names, layer.variables, strict=False):
                variables[f"{kind}{number}.{name}"] = variable
    return variables


def _read_creation_number(layer: Any) -> int:
    """Return the number that Keras appends to the names of one kind of layer: none for the first, then 1, 2, ..."""
    digits = layer.name.rpartition("_")[2]
    return int(digits) if digits.isdigit() else 0


def to_keras_layout(name: str, values: np.ndarray, flattened: tuple[int, int] | None) -> np.ndarray:
    """Turn a tensor in PyTorch's layout into Keras's.

    `flattened` is (channels, side) of the feature map that the first dense layer flattens, None where it is pooled.
    """
    if name.startswith("conv") and values.ndim == 4:
        return values.transpose(2, 3, 1, 0)
    if name == "dense0.weight" and flattened is not None:
        channels, side = flattened
        return values.reshape(-1, channels, side, side).transpose(2, 3, 1, 0).reshape(channels * side * side, -1)
    return values.T if values.ndim == 2 else values


def to_torch_layout(name: str, values: np.ndarray, flattened: tuple[int, int] | None) -> np.ndarray:
    """Turn a tensor in Keras's layout into PyTorch's: the inverse of `to_keras_layout`."""
    if name.startswith("conv") and values.ndim == 4:
        return values.transpose(3, 2, 0, 1)
    if name == "dense0.weight" and flattened is not None:
        channels, side = flattened
        return values.reshape(side, side, channels, -1).transpose(3, 2, 0, 1).reshape(-1, channels * side * side)
    return values.T if values.ndim == 2 else values
