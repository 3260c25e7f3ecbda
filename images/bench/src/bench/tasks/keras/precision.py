"""Sets Keras's types and image layout for a cell, and converts arrays to what the networks take."""

from typing import Any

import keras
import numpy as np
from keras import ops

from bench.schema import Cell
from bench.tasks.inputs import Arrays, make_inputs

HALVES = {"fp16": "float16", "bf16": "bfloat16"}


def set_precision(cell: Cell) -> dict[str, str | int | bool]:
    """Set Keras's types and image layout for the cell, overriding ~/.keras/keras.json; return the settings.

    Half precision is a mixed policy for training (float32 variables, half-precision arithmetic) and half-precision
    variables for inference.
    """
    policy = HALVES.get(cell.precision, "float32")
    if cell.phase == "train" and policy != "float32":
        policy = f"mixed_{policy}"
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy(policy)
    keras.config.set_image_data_format("channels_last")
    return {"dtype_policy": policy, "memory_format": "channels last (NHWC)"}


def prepare_inputs(cell: Cell) -> Arrays:
    """Return the cell's synthetic batch as Keras takes it: images channels last.

    Integers stay int64: TensorFlow keeps int32 tensors of a GPU in the host's memory and would copy them in every step.
    (JAX makes them int32 itself.)
    """
    return tuple(np.ascontiguousarray(to_channels_last(array)) for array in make_inputs(cell))


def cast_input(tensor: Any) -> Any:
    """Return a tensor in the type of the networks' weights; integers as they are."""
    if keras.backend.is_int_dtype(keras.backend.standardize_dtype(tensor.dtype)):
        return tensor
    return ops.cast(tensor, keras.config.dtype_policy().variable_dtype)


def widen(tensor: Any) -> Any:
    """Return a half-precision tensor in float32, others as they are: losses are summed up in float32, as PyTorch's."""
    return ops.cast(tensor, keras.backend.result_type(tensor.dtype, "float32"))


def to_channels_last(array: Any) -> Any:
    """Return images (batch, channels, height, width) as (batch, height, width, channels); other arrays as they are."""
    return array.transpose(0, 2, 3, 1) if array.ndim == 4 else array
