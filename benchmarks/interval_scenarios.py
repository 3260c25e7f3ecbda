"""Draws simulated repeats whose truth is known, for benchmarks/interval_coverage.py."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

NUM_STEPS = 30
WITHIN = 0.02
"""Standard deviation of the log of a step within its repeat."""
TWO_LEVELS = "two levels"
NOISES = ("lognormal", "heavy tails", TWO_LEVELS, "drift", "odd repeats")
LEVEL_STEP = 0.15
"""Log of the upper level over the lower one: TensorFlow's steps on a CPU jump by 10 to 20 %."""
LEVEL_SWITCH = 0.07
"""Chance of a jump from one step to the next: two jumps in a window of NUM_STEPS, as were seen."""
DRIFT = 0.03
"""Standard deviation of the log by which a repeat has drifted at the end of its window."""


def draw_steps(
    rng: np.random.Generator, shape: tuple[int, ...], *, between: float | FloatArray, noise: str
) -> FloatArray:
    """Return step times, shape (*shape, NUM_STEPS), around 1 s; the last axis of `shape` holds the repeats.

    `between`: standard deviation of the logs of the repeats, broadcast against `shape`.
    """
    if noise == "odd repeats":  # of Student's t with 3 degrees of freedom, scaled to the same standard deviation
        shifts = between * rng.standard_t(3, shape) / np.sqrt(3)
    else:
        shifts = between * rng.standard_normal(shape)
    steps = WITHIN * rng.standard_normal((*shape, NUM_STEPS))
    if noise == "heavy tails":
        steps = WITHIN * rng.standard_t(2, (*shape, NUM_STEPS))
    if noise == TWO_LEVELS:
        jumps = rng.random((*shape, NUM_STEPS)) < LEVEL_SWITCH
        jumps[..., 0] = rng.random(shape) < 0.5
        steps = steps + LEVEL_STEP * (np.cumsum(jumps, axis=-1) % 2)
    if noise == "drift":
        steps = steps + DRIFT * rng.standard_normal(shape)[..., np.newaxis] * np.linspace(0, 1, NUM_STEPS)
    return np.asarray(np.exp(shifts[..., np.newaxis] + steps))


def draw_card_logs(
    rng: np.random.Generator, shape: tuple[int, ...], *, num_repeats: int, cards: float | FloatArray, between: float
) -> FloatArray:
    """Return logs of the centres of repeats on cards, shape (*shape, num_repeats); the last axis of `shape`: the cards.

    `cards`: standard deviation of the logs of the cards, or their logs themselves.
    """
    levels = cards * rng.standard_normal(shape) if isinstance(cards, float) else cards
    return np.asarray(levels[..., np.newaxis] + between * rng.standard_normal((*shape, num_repeats)))
