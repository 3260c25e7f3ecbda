"""Print what PyTorch does with a cell, as one JSON object on the last line of stdout.

Started with TF32 and reduced precision switched on, so that only switching them off explains that they are off.
"""

import json
from typing import Any

import torch

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True

from bench.frameworks import pytorch  # noqa: E402
from bench.frameworks.pytorch_workload import PyTorchWorkload  # noqa: E402
from bench.probes.cpu import limit_library_threads  # noqa: E402
from factories import make_cell  # noqa: E402

NUM_TRAINING_STEPS = 12


def check_training() -> dict[str, Any]:
    """Train Conv6 on its one batch; say what became of weights and loss."""
    workload = PyTorchWorkload(make_cell(batch_size=8), 1)
    losses: list[float] = []
    model = workload.networks["model"]
    before = [parameter.detach().clone() for parameter in model.parameters()]
    for _ in range(NUM_TRAINING_STEPS):
        workload.run_step()
        losses.append(workload.losses[0].item())
    after = list(model.parameters())
    return {
        "losses": losses,
        "num_unchanged": sum(torch.equal(one, other) for one, other in zip(before, after, strict=True)),
        "is_training": model.training,
        "dtypes": sorted({str(parameter.dtype) for parameter in after}),
        "learning_rates": [group["lr"] for group in workload.optimizers[0].param_groups],
    }


def check_inference() -> dict[str, Any]:
    """Infer with ResNet18; say whether anything was changed or recorded for gradients."""
    workload = PyTorchWorkload(make_cell(model="resnet18", phase="infer", batch_size=2, input_size=64), 1)
    model = workload.networks["model"]
    seen: list[Any] = []

    def note(_: Any, __: Any, output: torch.Tensor) -> None:
        seen.append((tuple(output.shape), output.requires_grad, torch.is_inference_mode_enabled()))

    model.register_forward_hook(note)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for _ in range(3):
        workload.run_step()
    after = model.state_dict()
    return {
        "seen": seen,
        "num_changed": sum(not torch.equal(before[name], after[name]) for name in before),
        "num_gradients": sum(parameter.grad is not None for parameter in model.parameters()),
        "is_training": model.training,
    }


def check_out_of_memory(framework: pytorch.PyTorch) -> dict[str, bool]:
    """Say which errors count as too little memory."""
    errors: dict[str, BaseException] = {
        "cuda allocator": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        "cuda context": RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be reported later"),
        "cublas": RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        "c++": RuntimeError("std::bad_alloc"),
        "shapes": RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
        "value": ValueError("DefaultCPUAllocator"),
    }
    try:
        torch.empty(10**15)
    except RuntimeError as error:
        errors["cpu"] = error
    return {name: framework.is_out_of_memory(error) for name, error in errors.items()}


def main() -> None:
    """Print all answers."""
    limit_library_threads(1)
    framework = pytorch.load(make_cell(), 1)
    models = [PyTorchWorkload(make_cell(batch_size=1, seed=seed), 1).networks["model"] for seed in (5, 5, 6)]
    weights = [next(model.parameters()) for model in models]
    answers = {
        "settings": framework.settings,
        "versions": framework.versions,
        "switches": {
            "matmul_tf32": torch.backends.cuda.matmul.allow_tf32,
            "cudnn_tf32": torch.backends.cudnn.allow_tf32,
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
            "num_threads": torch.get_num_threads(),
            "num_interop_threads": torch.get_num_interop_threads(),
        },
        "training": check_training(),
        "inference": check_inference(),
        "out_of_memory": check_out_of_memory(framework),
        "seeded_alike": [torch.equal(weights[0], other) for other in weights[1:]],
    }
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
