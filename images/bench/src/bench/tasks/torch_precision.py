"""A language model in PyTorch and its like in float64, whose logits bench.tasks.precision compares."""

import copy
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bench.models.quantized import quantize
from bench.models.sizes import make_rotation
from bench.registry import DECODERS
from bench.schema import Cell
from bench.tasks.precision import Compute
from bench.tasks.torch import build_task, make_tensors


def build_pair(device: torch.device, dtype: torch.dtype, cell: Cell) -> tuple[Compute, Compute]:
    """Return the cell's model and the same in float64, with weights drawn in `dtype` as the cell's are."""
    torch.manual_seed(cell.seed)
    with make_tensors(device, dtype):
        exact = build_task(cell).networks["model"]
        model = copy.deepcopy(exact).to(dtype)
        quantize(model, cell.precision)
        widen(exact, make_rotation(DECODERS[cell.model], cell.input_size))

    @torch.no_grad()
    def compute(network: nn.Module, tokens: NDArray[np.int64], position: int) -> NDArray[np.float64]:
        with make_tensors(device, dtype):
            logits = network(torch.as_tensor(tokens), position=position)
        return cast(NDArray[np.float64], logits.double().cpu().numpy())

    return partial(compute, model), partial(compute, exact)


def widen(model: nn.Module, rotation: Any) -> None:
    """Make `model` compute in float64; to save memory, only the layer that is at work has weights of that width."""

    def enter(module: nn.Module, _: object) -> None:
        module.double()

    def leave(module: nn.Module, _: object, __: object) -> None:
        module.to(torch.get_default_dtype())

    for module in model.modules():
        if isinstance(module, nn.Embedding | nn.Linear | nn.RMSNorm):
            module.register_forward_pre_hook(enter)
            module.register_forward_hook(leave)
        for name, buffer in list(module.named_buffers(recurse=False)):
            wide = torch.tensor(rotation, dtype=torch.float64) if name == "rotation" else buffer.double()
            module.register_buffer(name, wide, persistent=False)
