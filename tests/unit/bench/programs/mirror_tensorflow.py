"""The same three steps in TensorFlow: what mirror_pytorch.py wrote in, MODEL-PRECISION-MODE.npz out.

Starts from PyTorch's weights; all tensors are written under the same names and in PyTorch's layout.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from mirror_cells import CASES, EPSILON, NUM_STEPS, PRECISIONS, make_mirror_cell
from mirror_layers import name_keras_variables, to_keras_layout, to_torch_layout

from bench.frameworks import tensorflow as framework_module

keras = framework_module.keras
tf = framework_module.tf


class RecordingAdam(keras.optimizers.Adam):  # type: ignore[misc]
    """Adam that keeps the gradients of its first step (by the paths of their variables) where they have values."""

    gradients: dict[str, np.ndarray]

    def __init__(self, learning_rate: float, epsilon: float) -> None:
        super().__init__(learning_rate, epsilon=epsilon if keras.config.floatx() == "float32" else EPSILON)
        RecordingAdam.gradients = {}

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        if tf.executing_eagerly() and not RecordingAdam.gradients:
            for gradient, variable in zip(grads, trainable_variables, strict=True):
                RecordingAdam.gradients[variable.path] = gradient.numpy()
        super().apply(grads, trainable_variables)


def read_variables(prefix: str, variables: dict[str, Any], flattened: tuple[int, int] | None) -> dict[str, np.ndarray]:
    """Return copies of the variables in PyTorch's layout under names with a prefix."""
    return {
        f"{prefix}/{name}": to_torch_layout(name, variable.numpy(), flattened).copy()
        for name, variable in variables.items()
    }


def run_steps(name: str, mode: str, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run the steps of one model in one mode from the given weights."""
    flattened = CASES[name][1]
    workload = framework_module.TensorFlowWorkload(make_mirror_cell(name, "tensorflow", mode))
    workload.images = tf.cast(workload.images, keras.config.floatx())
    variables = name_keras_variables(workload.model)
    for key, variable in variables.items():
        variable.assign(to_keras_layout(key, given[f"start/{key}"], flattened))
    arrays = read_variables("start", variables, flattened)
    arrays["images"] = workload.images.numpy().transpose(0, 3, 1, 2)
    arrays["labels"] = workload.labels.numpy()
    arrays["output"] = workload.model(workload.images, training=False).numpy()
    losses = []
    step_function = workload._step
    workload._step = lambda images, labels: losses.append(float(step_function(images, labels)))
    for step in range(NUM_STEPS):
        workload.run_step()
        if step == 0:
            arrays |= read_variables("first", variables, flattened)
    for key, variable in variables.items():
        if variable.path in RecordingAdam.gradients:
            arrays[f"gradient/{key}"] = to_torch_layout(key, RecordingAdam.gradients[variable.path], flattened)
    return arrays | read_variables("end", variables, flattened) | {"losses": np.array(losses)}


def main(folder: Path) -> None:
    """Write one file per model, precision and mode."""
    framework_module.load(make_mirror_cell("conv6", "tensorflow"), 1)
    keras.optimizers.Adam = RecordingAdam
    for precision in PRECISIONS:
        keras.config.set_floatx(precision)
        keras.config.set_dtype_policy(precision)
        for name in CASES:
            given = dict(np.load(folder / f"{name}-{precision}.npz"))
            for mode in ("eager", "graph"):
                np.savez(folder / f"{name}-{precision}-{mode}.npz", **run_steps(name, mode, given))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
