"""Builds Adam in Keras as PyTorch has it, with the model's rate and betas."""

from collections.abc import Sequence

import keras

from bench.registry import MODELS
from bench.schema import Cell

# Of torch.amp.GradScaler; Keras starts at 2^15 by itself. Both halve after an overflow, double after 2,000 good steps.
INITIAL_LOSS_SCALE = 2.0**16
LOSS_SCALE_GROWTH_STEPS = 2_000


def name_optimizer(cell: Cell) -> str:
    """Return what updates the weights, for the record, as PyTorch's `default Adam`; `none` where nothing is trained."""
    if cell.phase != "train":
        return "none"
    return "Keras Adam with dynamic loss scale" if cell.precision == "fp16" else "Keras Adam"


def build_optimizer(cell: Cell, variables: Sequence[keras.Variable]) -> keras.optimizers.Optimizer:
    """Return Adam over `variables` with the model's rate and betas; in fp16 with dynamic loss scaling.

    Epsilon is 1e-8 as in PyTorch (Keras's own default is 1e-7), though Keras adds it before the bias correction and
    PyTorch after it: the updates differ where a gradient is below about 1e-6, the amount of work does not.
    """
    spec = MODELS[cell.model]
    beta_1, beta_2 = spec.betas
    optimizer = keras.optimizers.Adam(spec.learning_rate, beta_1=beta_1, beta_2=beta_2, epsilon=1e-8)
    if cell.precision == "fp16":
        optimizer = keras.optimizers.LossScaleOptimizer(
            optimizer, initial_scale=INITIAL_LOSS_SCALE, dynamic_growth_steps=LOSS_SCALE_GROWTH_STEPS
        )
    optimizer.build(list(variables))
    return optimizer
