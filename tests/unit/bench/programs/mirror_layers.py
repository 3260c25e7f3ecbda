"""Names the tensors of a network's layers alike in PyTorch and Keras, in one order and in PyTorch's layout.

Names are `model/conv0.weight`, `generator_ab/upconv1.bias`, `model/norm3.mean`, ...: the network, the kind of layer,
the number within the kind in the order in which the Keras definition creates its layers, and the tensor. A parameter
of a layer of no kind below is a kind of its own, and must be called alike in both definitions: `pos_embedding0.weight`.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

Flattened = tuple[int, int] | None

TORCH_KINDS = {
    "Conv2d": "conv",
    "ConvTranspose2d": "upconv",
    "BatchNorm2d": "norm",
    "Linear": "dense",
    "LayerNorm": "layernorm",
    "Embedding": "embedding",
    # Its own parameters are those of the dense layer to queries, keys and values; the dense layer behind it is a child.
    "MultiheadAttention": "dense",
    "NonDynamicallyQuantizableLinear": "dense",
}
KERAS_KINDS = {
    "Conv2D": "conv",
    "Conv2DTranspose": "upconv",
    "BatchNormalization": "norm",
    "Dense": "dense",
    "LayerNormalization": "layernorm",
    "Embedding": "embedding",
}
NORM_TENSORS = ("weight", "bias", "mean", "variance")
# Tensors above this size are compared by every SAMPLE_STRIDE-th value: a prime, so that no axis is left out.
MAX_SIZE = 2**16
SAMPLE_STRIDE = 101


def name_torch_tensors(networks: Mapping[str, Any], *, gradients: bool = False) -> dict[str, Any]:
    """Return the networks' tensors by name: parameters and running statistics, or the gradients of the parameters."""
    tensors = {}
    for network_name, network in networks.items():
        layers = order_torch_layers(network)
        own = [layer for layer in layers if type(layer).__name__ not in TORCH_KINDS]
        named = _number_own_tensors(pair for layer in own for pair in layer.named_parameters(recurse=False))
        for name, parameter in named:
            tensors[f"{network_name}/{name}"] = parameter.grad if gradients else parameter
        for name, layer in number_layers(layers, TORCH_KINDS):
            prefix = f"{network_name}/{name}"
            for key, parameter in layer.named_parameters(recurse=False):
                tensors[f"{prefix}.{key.removeprefix('in_proj_')}"] = parameter.grad if gradients else parameter
            if "/norm" in prefix and not gradients:
                tensors[f"{prefix}.mean"], tensors[f"{prefix}.variance"] = layer.running_mean, layer.running_var
    return tensors


def name_keras_variables(networks: Mapping[str, Any]) -> dict[str, Any]:
    """Return the networks' variables by name, in Keras's own layout."""
    variables: dict[str, Any] = {}
    for network_name, network in networks.items():
        layers = sorted(network.layers, key=_read_creation_number)
        own = [layer for layer in layers if type(layer).__name__ not in KERAS_KINDS]
        named = _number_own_tensors((variable.name, variable) for layer in own for variable in layer.weights)
        variables |= {f"{network_name}/{name}": variable for name, variable in named}
        for name, layer in number_layers(layers, KERAS_KINDS):
            for key, variable in zip(NORM_TENSORS, layer.variables, strict=False):
                variables[f"{network_name}/{name}.{key}"] = variable
    return variables


def order_torch_layers(network: Any) -> list[Any]:
    """Return all modules; in a residual network the shortcut of a block comes before its two convolutions."""
    modules = list(network.modules())
    for block in [module for module in modules if getattr(module, "downsample", None) is not None]:
        shortcut = list(block.downsample)
        modules = [module for module in modules if all(module is not other for other in shortcut)]
        position = next(index for index, module in enumerate(modules) if module is block)
        modules[position:position] = shortcut
    return modules


def _number_own_tensors(tensors: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of layers of no kind, each with its name numbered."""
    counts: dict[str, int] = {}
    for key, tensor in tensors:
        counts[key] = counts.get(key, -1) + 1
        yield f"{key}{counts[key]}.weight", tensor


def number_layers(layers: list[Any], kinds: Mapping[str, str]) -> list[tuple[str, Any]]:
    """Return the layers of `kinds`, each with its kind and its number within the kind."""
    counts = dict.fromkeys(kinds.values(), 0)
    numbered = []
    for layer in layers:
        kind = kinds.get(type(layer).__name__)
        if kind is not None:
            numbered.append((f"{kind}{counts[kind]}", layer))
            counts[kind] += 1
    return numbered


def _read_creation_number(layer: Any) -> int:
    """Return the number that Keras appends to the names of one kind of layer: none for the first, then 1, 2, ..."""
    digits = layer.name.rpartition("_")[2]
    return int(digits) if digits.isdigit() else 0


def to_keras_layout(name: str, values: np.ndarray, flattened: Flattened) -> np.ndarray:
    """Turn a tensor in PyTorch's layout into Keras's; `flattened`: (channels, side) of the map before it."""
    if values.ndim == 4:
        return values.transpose(2, 3, 1, 0)
    if name.endswith("/dense0.weight") and flattened is not None:
        channels, side = flattened
        return values.reshape(-1, channels, side, side).transpose(2, 3, 1, 0).reshape(channels * side * side, -1)
    return values.T if "/dense" in name and values.ndim == 2 else values


def to_torch_layout(name: str, values: np.ndarray, flattened: Flattened) -> np.ndarray:
    """Return a view of a tensor in Keras's layout with its values in PyTorch's order, as `to_keras_layout` takes them.

    The weight behind a flattened map keeps the map's axes: as a matrix, it would be a copy (400 MB in VGG16).
    """
    if values.ndim == 4:
        return values.transpose(3, 2, 0, 1)
    if name.endswith("/dense0.weight") and flattened is not None:
        channels, side = flattened
        return values.reshape(side, side, channels, -1).transpose(3, 2, 0, 1)
    return values.T if "/dense" in name and values.ndim == 2 else values


def skip_drawing(initializers: Any) -> ExitStack:
    """Have `keras.initializers` return zeros for random weights, until the stack that is returned is closed."""
    stack = ExitStack()
    for kind in (initializers.RandomNormal, initializers.RandomUniform, initializers.VarianceScaling):
        zeros = lambda self, shape, dtype=None: np.zeros(shape, dtype or "float32")  # noqa: E731
        stack.enter_context(patch.object(kind, "__call__", zeros))
    return stack


def sample(values: np.ndarray) -> np.ndarray:
    """Return a copy of the values as a vector, of a large tensor every SAMPLE_STRIDE-th one."""
    return values.flatten() if values.size <= MAX_SIZE else values.flat[::SAMPLE_STRIDE]


def save_arrays(file: Path, arrays: Mapping[str, Any]) -> None:
    """Write the arrays under their names into an .npz file."""
    np.savez(file, **arrays)  # not typed as arrays: savez has a flag among its keywords


def describe(values: np.ndarray) -> list[float]:
    """Return size, standard deviation and kurtosis (normal: 3, uniform: 1.8; 0 where all values are equal)."""
    deviations = values.flat[:: max(1, values.size // MAX_SIZE)].astype(np.float64)
    deviations = deviations - deviations.mean()
    variance = float(np.mean(deviations**2))
    kurtosis = float(np.mean(deviations**4)) / variance**2 if variance else 0.0
    return [deviations.size, variance**0.5, kurtosis]
