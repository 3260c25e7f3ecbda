"""Counts the floating-point operations and minimum bytes of one step by analysis. Imports no framework.

What is counted: convolutions and matrix products, a multiply-add as two operations, padded positions included, as
PyTorch's FlopCounterMode counts them; not norms, activations, losses and optimisers, which a device bound by arithmetic
does beside them. Training: forward, the gradients of the weights, and those of each layer's input where something in
front of it learns (nothing is in front of a first layer).

Beside that count stands the least: what the best known algorithm of each layer needs (`layers.find_saving`). Rates and
shares are those of the first count; whether a time is possible at all is judged by the second.

What is counted as bytes: what has to cross the device's memory however good the caches are, each once: inference reads
weights and input and writes the output; training reads the input, and reads and writes weights and Adam's two moments
in float32. Activations and gradients need not cross. Inputs are counted in the cell's precision, token ids as 4 bytes.
"""

from importlib import import_module

from bench.models.flops.layers import StepCost
from bench.registry import locate_definition
from bench.schema import Cell

__all__ = ["StepCost", "count_step_cost"]


def count_step_cost(cell: Cell) -> StepCost:
    """Return the cost of one step on one GPU, or on the CPU: its share of the batch with a copy of all weights."""
    share = cell.model_copy(update={"batch_size": cell.batch_size // cell.num_gpus, "num_gpus": 1})
    cost: StepCost = import_module(locate_definition(cell.model, "flops")).count(share)
    return cost
