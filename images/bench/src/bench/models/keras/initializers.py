"""Makes the initial weights of Keras's models where Keras's defaults are not the published ones."""

import math
from typing import Any

from keras.initializers import RandomUniform, VarianceScaling


def he_normal_fan_out() -> Any:
    """Return PyTorch's kaiming_normal_(mode="fan_out"): normal, variance 2 / fan out (Keras's HeNormal truncates)."""
    return VarianceScaling(2.0, mode="fan_out", distribution="untruncated_normal")


def glorot_normal() -> Any:
    """Return PyTorch's xavier_normal_: normal, variance 2 / (fan in + fan out) (Keras's GlorotNormal truncates)."""
    return VarianceScaling(1.0, mode="fan_avg", distribution="untruncated_normal")


def torch_uniform(num_inputs: int) -> Any:
    """Return what torch.nn.Linear draws weights and biases from: uniform within +-1 / sqrt(num_inputs)."""
    bound = 1 / math.sqrt(num_inputs)
    return RandomUniform(-bound, bound)
