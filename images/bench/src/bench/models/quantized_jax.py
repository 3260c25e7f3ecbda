"""A dense layer with weights of eight bits, for the precisions `fp8` and `int8-weights` of language models in JAX."""

from typing import Any

import jax
import jax.numpy as jnp
from keras import KerasTensor, layers

from bench.models.sizes import LEAST_SCALE
from bench.schema import Precision

WEIGHTS: dict[Precision, tuple[Any, float]] = {
    "fp8": (jnp.float8_e4m3fn, float(jnp.finfo(jnp.float8_e4m3fn).max)),
    "int8-weights": (jnp.int8, 127.0),
}
"""The type of the weights and its largest value."""


class EightBitDense(layers.Layer):
    """Computes what the layers of bench.models.quantized compute, with a kernel (outputs, inputs)."""

    def __init__(self, num_outputs: int, precision: Precision, initializer: Any) -> None:
        super().__init__()
        self.num_outputs, self.initializer = num_outputs, initializer
        self.multiplies_fp8 = precision == "fp8"
        self.weight_type, self.largest = WEIGHTS[precision]

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        shape = (self.num_outputs, input_shape[-1])
        options = {"initializer": "zeros", "trainable": False, "autocast": False}
        self.kernel = self.add_weight(shape=shape, dtype=jnp.dtype(self.weight_type).name, **options)
        self.scale = self.add_weight(shape=shape[:1], dtype="float32", **options)
        self.round_kernel(self.initializer(shape, self.variable_dtype))

    def round_kernel(self, kernel: Any) -> None:
        """Take the values of `kernel` (outputs, inputs) over."""
        values, scale = self.round_rows(kernel)
        self.kernel.assign(values)
        self.scale.assign(scale[:, 0])

    def round_rows(self, rows: Any) -> tuple[Any, Any]:
        wide = rows.astype("float32")
        scale = jnp.maximum(jnp.abs(wide).max(-1, keepdims=True) / self.largest, LEAST_SCALE)
        scaled = wide / scale
        return (scaled if self.multiplies_fp8 else jnp.round(scaled)).astype(self.weight_type), scale

    def call(self, x: Any) -> Any:
        # As functions of arrays: Keras's own operations would widen the operands.
        kernel, scale = self.kernel.value, self.scale.value
        left, left_scale = self.round_rows(x) if self.multiplies_fp8 else (x, 1.0)
        kernel = kernel if self.multiplies_fp8 else kernel.astype(x.dtype)
        last, first = (x.ndim - 1,), (1,)
        product = jax.lax.dot_general(left, kernel, ((last, first), ((), ())), preferred_element_type=jnp.float32)
        return (product * left_scale * scale).astype(x.dtype)

    def compute_output_spec(self, x: Any) -> Any:
        return KerasTensor((*x.shape[:-1], self.num_outputs), self.compute_dtype)
