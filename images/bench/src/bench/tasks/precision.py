"""The error of a precision: how far a language model's logits are from those of the same weights in float64."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from bench.models.flops import count_step_cost
from bench.registry import DECODERS
from bench.schema import Cell, PrecisionError

Compute = Callable[[NDArray[np.int64], int], NDArray[np.float64]]
"""Returns the logits (1, vocabulary) behind tokens (1, number) of which the first has that position."""

MAX_TOKENS, MAX_STEPS = 2048, 128
MAX_PARAMETERS_ON_CPU = 10**8
"""Of a billion it would take minutes in float64."""


def measure_precision_error(
    cell: Cell, build_pair: Callable[[Cell], tuple[Compute, Compute]], max_parameters: float
) -> PrecisionError | None:
    """Return the error over a prompt and the greedy steps after it, each of which gets the token that float64 chose.

    It is measured on one sequence, between the model and its like in float64 that `build_pair` returns. None for what
    is no language model, and for those with more than `max_parameters` (on a CPU MAX_PARAMETERS_ON_CPU).
    """
    max_parameters = MAX_PARAMETERS_ON_CPU if cell.device == "cpu" else max_parameters
    if cell.model not in DECODERS or count_step_cost(cell).num_parameters > max_parameters:
        return None
    capacity = min(cell.input_size, MAX_TOKENS)
    num_steps = min(MAX_STEPS, capacity // 2)
    vocabulary_size = DECODERS[cell.model].vocabulary_size
    prompt = np.random.default_rng(cell.seed).integers(vocabulary_size, size=(1, capacity - num_steps))
    pair = build_pair(cell.model_copy(update={"batch_size": 1, "input_size": capacity}))
    return compare(list(generate(*pair, prompt, num_steps)))


def generate(
    compute: Compute, compute_exactly: Compute, tokens: NDArray[np.int64], num_steps: int
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Yield the logits of both after the prompt and after each token that `compute_exactly` chooses."""
    position = 0
    for _ in range(1 + num_steps):
        logits, expected = compute(tokens, position), compute_exactly(tokens, position)
        yield logits, expected
        position += tokens.shape[1]
        tokens = expected.argmax(-1, keepdims=True)


def compare(pairs: list[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> PrecisionError:
    logits, expected = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return PrecisionError(
        relative_error=float(np.linalg.norm(logits - expected) / np.linalg.norm(expected)),
        equal_token_share=float((logits.argmax(-1) == expected.argmax(-1)).mean()),
        num_tokens=len(logits),
    )
