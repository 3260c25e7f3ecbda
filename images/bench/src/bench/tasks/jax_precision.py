"""A language model in JAX and its like in float64, whose logits bench.tasks.precision compares."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import keras
import numpy as np
from keras import layers, ops
from numpy.typing import NDArray

from bench.models import build_model
from bench.models.quantized_jax import EightBitDense
from bench.schema import Cell
from bench.tasks.keras import set_precision
from bench.tasks.precision import Compute


def build_pair(cell: Cell) -> tuple[Compute, Compute]:
    """Return the cell's model and the same in float64, with weights rounded to the type that the cell draws them in."""
    keras.utils.set_random_seed(cell.seed)
    keras.config.set_dtype_policy("float64")
    exact = build_model(cell.model_copy(update={"precision": "fp32"}), "keras")
    set_precision(cell)
    model = build_model(cell, "keras")
    for layer, other in pair_layers(model, exact):
        (weight,) = other.weights
        weight.assign(ops.cast(weight.value, model.variable_dtype))
        if isinstance(layer, EightBitDense):
            layer.round_kernel(weight.value if isinstance(other, layers.Embedding) else ops.transpose(weight.value))
        else:
            layer.weights[0].assign(weight.value)
    return make_compute(model), make_compute(exact)


def pair_layers(model: Any, exact: Any) -> Iterator[tuple[layers.Layer, layers.Layer]]:
    """Yield the layers with weights, and those that have theirs in float64."""
    yield model.embedding, exact.embedding
    for block, other in zip(model.blocks, exact.blocks, strict=True):
        for name in ("attention_norm", "query_key_value", "projection", "mlp_norm", "gate_up", "down"):
            yield getattr(block, name), getattr(other, name)
    yield model.norm, exact.norm
    if model.head is not None:
        yield model.head, exact.head or exact.embedding


def make_compute(model: Any) -> Compute:
    """Return the model as two programs: one for a prompt, and one for a token at any position."""
    variables = model.variables
    state = [variable.value for variable in variables]

    def run(state: list[Any], tokens: Any, position: Any) -> tuple[list[Any], Any]:
        with keras.StatelessScope(list(zip(variables, state, strict=True))) as scope:
            logits = model(tokens, position=position)
        return [scope.get_current_value(variable) for variable in variables], ops.cast(logits, "float64")

    take_prompt = jax.jit(partial(run, position=0), donate_argnums=0)
    take_token = jax.jit(run, donate_argnums=0)

    def compute(tokens: NDArray[np.int64], position: int) -> NDArray[np.float64]:
        nonlocal state
        state, logits = take_token(state, tokens, position) if position else take_prompt(state, tokens)
        return np.asarray(logits)

    return compute
