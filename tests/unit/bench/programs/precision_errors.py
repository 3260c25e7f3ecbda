"""Prints, as JSON, the errors of llama-tiny's logits in each precision that its workload steps in on a CPU."""

import json

from bench.frameworks.pytorch import PyTorch
from bench.schema import Cell

FIELDS = {"model": "llama-tiny", "framework": "pytorch", "device": "cpu", "phase": "decode", "batch_size": 2}
errors = {}
for precision in ("fp32", "bf16", "int8-weights", "fp8"):
    cell = Cell.model_validate({**FIELDS, "precision": precision, "input_size": 64, "num_classes": None})
    framework = PyTorch(cell, 1)
    workload = framework.build_workload(cell)
    workload.run_step()
    error = framework.measure_precision_error(cell)
    assert error
    assert error.num_tokens == 33
    errors[precision] = error.relative_error
print(json.dumps(errors))
