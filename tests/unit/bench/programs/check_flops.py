"""Run in PyTorch's environment: count operations and parameters of each cell's step with PyTorch's own counter.

Reads a JSON list of cells from stdin, prints `[[flops, parameters], ...]`. Nothing is computed: everything is on the
`meta` device. Attention as plain matrix products: the fused kernels compute some of them again in the backward pass.
"""

import json
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from bench.schema import Cell
from bench.tasks.inputs import make_inputs
from bench.tasks.torch import Part, build_task


def count(cell: Cell) -> list[int]:
    with torch.device("meta"):
        task = build_task(cell)
    inputs = tuple(torch.from_numpy(array).to("meta") for array in make_inputs(cell))
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        if cell.phase != "train":
            with torch.no_grad():
                task.infer(*inputs)
        carry: tuple[torch.Tensor, ...] = ()
        for part in task.parts if cell.phase == "train" else ():
            carry = train(part, (*inputs, *carry))
    names = list(task.networks)[: 1 if cell.phase != "train" else None]
    parameters = [value for name in names for value in task.networks[name].parameters()]
    return [counter.get_total_flops(), sum(value.numel() for value in parameters)]


def train(part: Part, tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    for network in part.frozen:
        network.requires_grad_(False)
    carry: tuple[torch.Tensor, ...]
    loss, carry = part(*tensors)
    loss.backward()
    for network in part.frozen:
        network.requires_grad_(True)
    return carry


print(json.dumps([count(Cell.model_validate(fields)) for fields in json.load(sys.stdin)]))
