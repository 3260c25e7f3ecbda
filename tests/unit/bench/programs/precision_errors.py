"""Prints, as JSON, the errors of llama-tiny's logits in each precision that its workload steps in on a CPU."""

import json
from unittest.mock import Mock

import torch

from bench.frameworks.pytorch import PyTorch
from bench.models.quantized import quantize
from bench.schema import Cell
from bench.tasks.precision import generate

torch.manual_seed(0)
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
zero, one = (Mock(return_value=row[None]) for row in torch.eye(2))
assert len(list(generate(zero, one, torch.zeros(1, 4), 2))) == 3
calls = [(call.args[0].tolist(), call.kwargs["position"]) for call in one.call_args_list]
assert calls == [([[0] * 4], 0), ([[1]], 4), ([[1]], 5)]
FIELDS = {"model": "llama-tiny", "framework": "pytorch", "device": "cpu", "phase": "decode", "batch_size": 2}
errors = {"step": float((found.std(0)[1:] / steps[1:]).mean() * (12 / 256) ** 0.5)}
for precision in ("fp32", "bf16", "int8-weights", "fp8"):
    cell = Cell.model_validate({**FIELDS, "precision": precision, "input_size": 32, "num_classes": None})
    framework = PyTorch(cell, 1)
    workload = framework.build_workload(cell)
    workload.run_step()
    error = framework.measure_precision_error(cell)
    assert error
    assert error.num_tokens == 17
    assert error.equal_token_share > 0.5
    assert torch.get_default_dtype() == torch.float32
    errors[precision] = error.relative_error
print(json.dumps(errors))
