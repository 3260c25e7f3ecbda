"""Print what PyTorch does with cells in each mode and precision, as one JSON object on the last line of stdout.

Started with TF32 and reduced precision switched on, so that only switching them off explains that they are off.
"""

import json
import os
from dataclasses import replace
from typing import Any

import torch

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True

from bench.frameworks import pytorch, pytorch_workload  # noqa: E402
from bench.frameworks.pytorch_replicas import ReplicatedWorkload  # noqa: E402
from bench.frameworks.pytorch_workload import PyTorchWorkload, choose_inductor_options  # noqa: E402
from bench.probes.cpu import limit_library_threads  # noqa: E402
from bench.schema import Cell  # noqa: E402
from bench.tasks.cyclegan import POOL_SIZE  # noqa: E402
from bench.tasks.torch import ImagePool  # noqa: E402
from factories import make_cell  # noqa: E402

NUM_STEPS = 3


def train(cell: Cell) -> dict[str, Any]:
    """Run some training steps; say what the losses were, and which weights have moved."""
    pytorch_workload.set_switches(cell, 1)
    workload = PyTorchWorkload(cell, 1)
    before = copy_weights(workload)
    losses = []
    for _ in range(NUM_STEPS):
        workload.run_step()
        losses.append([loss.item() for loss in workload.losses])
    after = copy_weights(workload)
    return {
        "losses": losses,
        "moved": {name: not torch.equal(before[name], after[name]) for name in before},
        "dtypes": sorted(
            {str(tensor.dtype) for network in workload.networks.values() for tensor in network.parameters()}
        ),
        "settings": workload.settings,
        "device_kind": workload.device_kind(),
    }


def copy_weights(workload: PyTorchWorkload) -> dict[str, torch.Tensor]:
    """Return all weights of each network as one vector."""
    return {
        name: torch.cat([tensor.detach().flatten() for tensor in network.parameters()]).clone()
        for name, network in workload.networks.items()
    }


def infer(cell: Cell) -> list[float]:
    """Return some values of the output of one inference step."""
    workload = PyTorchWorkload(cell, 1)
    output = workload._step.run(workload.inputs)
    assert output is not None
    return [float(value) for value in output.flatten()[:10]]


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


def check_pool() -> dict[str, Any]:
    """Show a pool twice its size of images that can be told apart; say which came back."""
    torch.manual_seed(0)
    pool = ImagePool(2)
    shown = [float(number) for number in range(POOL_SIZE * 20)]
    came = [float(pool(torch.full((1, 3, 2, 2), number))[0, 0, 0, 0]) for number in shown]
    return {"shown": shown, "came": came, "kept": sorted(pool.images[:, 0, 0, 0].tolist())}


def check_parts() -> dict[str, int]:
    """Run CycleGAN's first part alone, then a step; count discriminators' gradients and generators' calls."""
    workload = PyTorchWorkload(make_cell(model="cyclegan", num_classes=None, batch_size=1), 1)
    calls: list[int] = []
    for name in ("generator_ab", "generator_ba"):
        workload.networks[name].register_forward_hook(lambda *_: calls.append(1))
    replace(workload._step, parts=workload.task.parts[:1]).run(workload.inputs)  # type: ignore[type-var]
    num_calls = len(calls)
    discriminators = [workload.networks[f"discriminator_{domain}"] for domain in "ab"]
    parameters = [parameter for network in discriminators for parameter in network.parameters()]
    num_gradients = sum(parameter.grad is not None for parameter in parameters)
    calls.clear()
    workload.run_step()
    return {
        "num_calls_first_part": num_calls,
        "num_calls_step": len(calls),
        "num_gradients_first_part": num_gradients,
        "num_gradients_step": sum(parameter.grad is not None for parameter in parameters),
        "num_parameters": len(parameters),
    }


def compare_replicas() -> dict[str, Any]:
    """Train on one batch in one process, and with half of it in each of two; return how far apart the weights end.

    Beside it, how far apart they end from those of half a batch in one process. Some steps are synchronised one by one,
    as in the timed window, some run back to back.
    """
    whole = make_cell(batch_size=8)
    alone = PyTorchWorkload(whole, 1)
    together = ReplicatedWorkload(whole.model_copy(update={"num_gpus": 2}), 1)
    half = PyTorchWorkload(make_cell(batch_size=4), 1)
    start = copy_weights(together)["model"]
    together.spin_up()
    for _ in range(NUM_STEPS):
        for workload in (alone, together, half):
            workload.run_step()
            workload.synchronize()
    for workload in (alone, together, half):
        for _ in range(NUM_STEPS):
            workload.run_step()
        workload.synchronize()
    one, other, less = (copy_weights(workload)["model"] for workload in (alone, together, half))
    return {
        "difference": float((one - other).norm() / (one - start).norm()),
        "difference_of_half": float((one - less).norm() / (one - start).norm()),
        "shares": [len(alone.inputs[0]), len(together.inputs[0])],
    }


def main() -> None:
    """Print all answers."""
    limit_library_threads(1)
    framework = pytorch.load(make_cell(), 1)
    models = [PyTorchWorkload(make_cell(batch_size=1, seed=seed), 1).networks["model"] for seed in (5, 5, 6)]
    weights = [next(model.parameters()) for model in models]
    answers = {
        "settings": framework.settings,
        "switches": {
            "matmul_tf32": torch.backends.cuda.matmul.allow_tf32,
            "cudnn_tf32": torch.backends.cudnn.allow_tf32,
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
            "num_threads": torch.get_num_threads(),
            "num_interop_threads": torch.get_num_interop_threads(),
        },
        "unchanged": check_inference(),
        "out_of_memory": check_out_of_memory(framework),
        "seeded_alike": [torch.equal(weights[0], other) for other in weights[1:]],
        "training": {
            f"{mode} {precision}": train(make_cell(batch_size=4, mode=mode, precision=precision))
            for mode in ("eager", "compiled")
            for precision in ("fp32", "bf16")
        }
        | {
            model: train(make_cell(model=model, num_classes=num_classes, batch_size=2, input_size=input_size))
            for model, num_classes, input_size in (("cyclegan", None, 32), ("text-classifier", 2, 16))
        },
        "scaled": train(make_cell(batch_size=4, precision="fp16")),
        "inference": {
            f"{mode} {precision}": infer(make_cell(batch_size=2, phase="infer", mode=mode, precision=precision))
            for mode in ("eager", "compiled")
            for precision in ("fp32", "bf16")
        },
        "pool": check_pool(),
        "parts": check_parts(),
        "replicas": compare_replicas(),
        "inductor": {
            f"{device} {model} {phase}": choose_inductor_options(
                make_cell(model=model, device=device, phase=phase, mode="compiled")
            )
            for device in ("cpu", "gpu")
            for model in ("conv6", "resnet18")
            for phase in ("train", "infer")
        },
    }
    print(json.dumps(answers), flush=True)
    os._exit(0)  # as bench does: the replicas end with their parent


if __name__ == "__main__":  # the replicas are started from this file again
    main()
