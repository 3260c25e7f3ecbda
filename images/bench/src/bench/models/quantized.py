"""Layers with weights of eight bits, which replace PyTorch's linear ones in the precisions `fp8` and `int8-weights`."""

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from bench.models.sizes import LEAST_SCALE
from bench.schema import Precision

FP8_MAX = torch.finfo(torch.float8_e4m3fn).max


class Fp8Linear(nn.Module):
    """Multiplies activations by weights, both float8_e4m3fn with a scale for each row; sums in float32.

    The scales of the activations (rows, inputs) are found in every step.
    """

    weight: Tensor
    scale: Tensor

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        weight, scale = to_fp8(layer.weight.detach())
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale.t().contiguous())

    def forward(self, x: Tensor) -> Tensor:
        rows, scale = to_fp8(x.flatten(0, -2))
        if len(rows) == 1 and torch.compiler.is_compiling():
            # Fused as one reduction that reads the weights once: 1.10 instead of 1.35 ms a step (1B, batch 1, H100).
            product = (rows.float() * self.weight.float()).sum(-1) * scale * self.scale
            product = product.to(x.dtype)
        else:
            product = torch._scaled_mm(  # PyTorch has no public name for it
                rows, self.weight.t(), scale_a=scale, scale_b=self.scale, out_dtype=x.dtype
            )
        return product.unflatten(0, x.shape[:-1])


class Int8Linear(nn.Module):
    """Multiplies activations by int8 weights with a scale for each row, widened to the activations' type."""

    weight: Tensor
    scale: Tensor

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        weight = layer.weight.detach().float()
        scale = find_scales(weight, 127)
        self.register_buffer("weight", (weight / scale).round().to(torch.int8))
        self.register_buffer("scale", scale.flatten())

    def forward(self, x: Tensor) -> Tensor:
        # Scaled in float32: else torch.compile takes a kernel that is ten times as slow (11.4 ms, 1B, batch 1, H100).
        return (linear(x, self.weight.to(x.dtype)).float() * self.scale).to(x.dtype)


LAYERS: dict[Precision, type[Fp8Linear | Int8Linear]] = {"fp8": Fp8Linear, "int8-weights": Int8Linear}


def find_scales(rows: Tensor, largest: float) -> Tensor:
    """Return the scale (rows, 1) in float32 that brings the largest value of each row to `largest`."""
    return (rows.abs().amax(-1, keepdim=True).float() / largest).clamp(min=LEAST_SCALE)


def to_fp8(rows: Tensor) -> tuple[Tensor, Tensor]:
    scale = find_scales(rows, FP8_MAX)
    return (rows.float() / scale).to(torch.float8_e4m3fn), scale


def quantize(module: nn.Module, precision: Precision) -> None:
    """Replace all linear layers in `module`; do nothing if the precision has more than eight bits."""
    if precision not in LAYERS:
        return
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, LAYERS[precision](child))
        else:
            quantize(child, precision)
