"""Carries out the three training steps of mirror_pytorch.py in Keras and writes what came of them.

Its arguments are a framework, its mode and a folder; it writes MODEL-PRECISION-FRAMEWORK-MODE.npz there. It starts
from PyTorch's weights; all tensors are written under the same names and in PyTorch's layout. The gradients of the
first step are Adam's first moments after it over 1 - beta 1 (Kingma and Ba, algorithm 1), so that they can be read in
every mode. initial-tensorflow-MODE.json says how the weights of a new model are distributed,
kinds-tensorflow-MODE.json which kinds of layers each model has.
"""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
from mirror_layers import (
    Flattened,
    describe,
    name_keras_variables,
    sample,
    save_arrays,
    skip_drawing,
    to_keras_layout,
    to_torch_layout,
)
from workload_state import find_networks, find_optimizers, read_losses

from bench.registry import Framework, Mode
from mirror_cells import EPSILON, NUM_STEPS, SMALLER, list_keras_runs, make_mirror_cell

Arrays = dict[str, np.ndarray]

FRAMEWORK, MODE = cast(Framework, sys.argv[1]), cast(Mode, sys.argv[2])
module = import_module(f"bench.frameworks.{FRAMEWORK}")
keras = module.keras
definitions: Any = import_module("bench.models.keras")
vars(definitions).update(SMALLER)


def read_variables(networks: Any, flattened: Flattened) -> Arrays:
    """Return views of the variables in PyTorch's layout."""
    variables = name_keras_variables(networks)
    return {name: to_torch_layout(name, np.asarray(variable.value), flattened) for name, variable in variables.items()}


def sample_variables(prefix: str, networks: Any, flattened: Flattened) -> Arrays:
    """Return samples of the variables under names with a prefix."""
    return {f"{prefix}/{name}": sample(values) for name, values in read_variables(networks, flattened).items()}


def sample_gradients(workload: Any, flattened: Flattened) -> Arrays:
    """Return samples of the first step's gradients."""
    gradients = {}
    for optimizer in find_optimizers(workload):
        for variable, moment in zip(optimizer._trainable_variables, optimizer._momentums, strict=True):
            gradients[id(variable)] = np.asarray(moment.value) / (1 - optimizer.beta_1)
    return {
        f"gradient/{name}": sample(to_torch_layout(name, gradients[id(variable)], flattened))
        for name, variable in name_keras_variables(find_networks(workload)).items()
        if id(variable) in gradients
    }


def infer(network: Any, images: Any) -> np.ndarray:
    """Return the network's output; compiled in JAX, where thousands of single operations would each be."""
    if FRAMEWORK == "tensorflow":
        return np.asarray(network(images, training=False))
    kinds = (network.trainable_variables, network.non_trainable_variables)
    state = ([variable.value for variable in variables] for variables in kinds)
    compiled = module.jax.jit(lambda *state: network.stateless_call(*state, images, training=False)[0])
    return np.asarray(compiled(*state))


def build_workload(name: str, precision: str) -> Any:
    """Return the workload of one model with the precision and Adam's epsilon set and without dropout."""
    cell = make_mirror_cell(name, FRAMEWORK, MODE)
    framework = module.load(cell, 1)
    keras.config.set_floatx(precision)
    keras.config.set_dtype_policy(precision)
    workload = framework.build_workload(cell)
    for optimizer in find_optimizers(workload):
        optimizer.epsilon = EPSILON
    for network in find_networks(workload).values():
        for layer in network.layers:
            if isinstance(layer, keras.layers.Dropout):
                layer.rate = 0.0
    return workload


def find_flattened(networks: Any) -> Flattened:
    """Return (channels, side) of the feature map that the first dense layer takes; None where it takes none."""
    for layer in [layer for network in networks.values() for layer in network.layers]:
        if isinstance(layer, keras.layers.Flatten):
            _, side, _, channels = layer.input.shape
            return channels, side
    return None


def copy_weights(networks: Any, given: Any, flattened: Flattened) -> None:
    """Give every variable PyTorch's values."""
    variables = name_keras_variables(networks)
    assert set(variables) == set(given.files)
    for name, variable in variables.items():
        variable.assign(to_keras_layout(name, given[name], flattened))


def run_steps(workload: Any, flattened: Flattened) -> Arrays:
    """Run inference once in every network, and the training steps."""
    arrays = sample_variables("start", find_networks(workload), flattened)
    for index, tensor in enumerate(workload.inputs):
        values = np.asarray(tensor)
        arrays[f"input{index}"] = values.transpose(0, 3, 1, 2) if values.ndim == 4 else values
    for name, network in find_networks(workload).items():
        output = infer(network, workload.inputs[0])
        arrays[f"output/{name}"] = output.transpose(0, 3, 1, 2) if output.ndim == 4 else output
    losses = []
    for step in range(NUM_STEPS):
        workload.run_step()
        losses.append(read_losses(workload))
        if step == 0:
            arrays |= sample_variables("first", find_networks(workload), flattened) | sample_gradients(
                workload, flattened
            )
    arrays["num_tensors"] = np.array(sum(len(network.weights) for network in find_networks(workload).values()))
    return arrays | sample_variables("end", find_networks(workload), flattened) | {"losses": np.array(losses)}


def main(folder: Path) -> None:
    """Write the files of every model and precision that runs in this mode."""
    initial, kinds = {}, {}
    if FRAMEWORK == "jax":
        skip_drawing(keras.initializers)  # the weights are PyTorch's, and each shape would be a program to compile
    for name, precision in list_keras_runs(FRAMEWORK, MODE):
        workload = build_workload(name, precision)
        flattened = find_flattened(find_networks(workload))
        if FRAMEWORK == "tensorflow":
            arrays = read_variables(find_networks(workload), flattened)
            initial[name] = {key: describe(values) for key, values in arrays.items()}
            kinds[name] = sorted(
                {type(layer).__name__ for one in find_networks(workload).values() for layer in one.layers}
            )
        copy_weights(find_networks(workload), np.load(folder / f"{name}-{precision}-weights.npz"), flattened)
        save_arrays(folder / f"{name}-{precision}-{FRAMEWORK}-{MODE}.npz", run_steps(workload, flattened))
        keras.backend.clear_session()
    if initial:
        (folder / f"initial-{FRAMEWORK}-{MODE}.json").write_text(json.dumps(initial))
        (folder / f"kinds-{FRAMEWORK}-{MODE}.json").write_text(json.dumps(kinds))


if __name__ == "__main__":
    main(Path(sys.argv[3]))
