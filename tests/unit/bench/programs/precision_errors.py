"""Prints, as JSON, the errors of one layer's logits in each precision that a workload steps in on a CPU.

Argument: the framework.
"""

import json
import sys
from dataclasses import replace
from unittest.mock import Mock

import numpy as np

from bench.frameworks.interface import load_framework
from bench.registry import DECODERS
from bench.schema import Cell
from bench.tasks.precision import generate

zero, one = (Mock(return_value=row[None]) for row in np.eye(2))
assert len(list(generate(zero, one, np.zeros((1, 4), np.int64), 2))) == 3
calls = [(call.args[0].tolist(), call.args[1]) for call in one.call_args_list]
assert calls == [([[0] * 4], 0), ([[1]], 4), ([[1]], 5)]
DECODERS["llama-tiny"] = replace(DECODERS["llama-tiny"], num_layers=1)
FIELDS = {"model": "llama-tiny", "device": "cpu", "phase": "decode", "batch_size": 2, "input_size": 32}
FIELDS |= {"framework": sys.argv[1], "mode": "compiled" if sys.argv[1] == "jax" else "eager", "num_classes": None}
precisions = ("int8-weights", "fp8") if sys.argv[1] == "jax" else ("fp32", "bf16", "int8-weights", "fp8")
cells = [Cell.model_validate({**FIELDS, "precision": precision}) for precision in precisions]
framework = load_framework(cells[0], 1)
workloads = [framework.build_workload(cell) for cell in cells]
for workload in workloads:
    workload.run_step()
errors: dict[str, float] = {}
for cell in cells:
    error = framework.measure_precision_error(cell)
    assert error
    assert error.num_tokens == 17
    assert error.equal_token_share > 0.5
    errors[cell.precision] = error.relative_error
if sys.argv[1] == "pytorch":
    import torch

    from bench.models.quantized import quantize

    assert torch.get_default_dtype() == torch.float32
    # One layer with int8 weights: its error over what the rounding of each row to its steps explains.
    layer, x = torch.nn.Linear(256, 32, bias=False), torch.randn(200, 256)
    model = torch.nn.Sequential(torch.nn.Sequential(layer))
    with torch.no_grad():
        layer.weight *= torch.logspace(-5, 0, 32)[:, None]
        layer.weight[0] = 0
        exact, steps = model(x), layer.weight.abs().amax(-1) / 127
        quantize(model, "int8-weights")
        found = model(x) - exact
    assert found.isfinite().all()
    errors["step"] = float((found.std(0)[1:] / steps[1:]).mean() * (12 / 256) ** 0.5)
print(json.dumps(errors))
