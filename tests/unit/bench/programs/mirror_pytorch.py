"""Three real PyTorch training steps: a folder in, MODEL-PRECISION.npz with weights, data, results and gradients out.

Names in the file: `start/...` tensors before the first step, `gradient/...` of the first step, `first/...` running
statistics after the first step, `end/...` tensors after the last; `images`, `labels`, `output` (inference before the
first step), `losses`.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mirror_cells import CASES, EPSILON, NUM_STEPS, PRECISIONS, make_mirror_cell
from mirror_layers import name_torch_tensors

from bench.frameworks import pytorch


def randomize_norms(model: Any) -> None:
    """Give every batch norm scales, shifts and running statistics that a mix-up would show."""
    generator = torch.Generator().manual_seed(1)
    for name, tensor in name_torch_tensors(model).items():
        if name.startswith("norm"):
            low, high = (0.5, 1.5) if name.endswith(("weight", "variance")) else (-0.2, 0.2)
            tensor.data.uniform_(low, high, generator=generator)


def copy_tensors(prefix: str, tensors: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return NumPy copies of the tensors under names with a prefix."""
    return {f"{prefix}/{name}": tensor.detach().numpy().copy() for name, tensor in tensors.items()}


def run_steps(workload: Any) -> dict[str, np.ndarray]:
    """Run inference once and the training steps of one workload."""
    model = workload.model
    arrays = copy_tensors("start", name_torch_tensors(model))
    arrays |= {"images": workload.images.numpy(), "labels": workload.labels.numpy()}
    model.eval()
    with torch.inference_mode():
        arrays["output"] = model(workload.images).numpy()
    model.train()
    losses: list[float] = []
    workload._loss.register_forward_hook(lambda _, __, loss: losses.append(loss.item()))
    for step in range(NUM_STEPS):
        workload.run_step()
        if step == 0:
            arrays |= copy_tensors("gradient", name_torch_tensors(model, gradients=True))
            arrays |= copy_tensors("first", name_torch_tensors(model))
    return arrays | copy_tensors("end", name_torch_tensors(model)) | {"losses": np.array(losses)}


def main(folder: Path) -> None:
    """Write one file per model and precision."""
    framework = pytorch.load(make_mirror_cell("conv6", "pytorch"), 1)
    for name in CASES:
        for precision in PRECISIONS:
            workload = framework.build_workload(make_mirror_cell(name, "pytorch"))
            randomize_norms(workload.model)
            if precision == "float64":
                workload.model.double()
                workload.images = workload.images.double()
                workload.optimizer.param_groups[0]["eps"] = EPSILON
            np.savez(folder / f"{name}-{precision}.npz", **run_steps(workload))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
