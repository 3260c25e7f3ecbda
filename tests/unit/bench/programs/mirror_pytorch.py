"""Carries out three training steps in PyTorch and writes their tensors, for comparison with Keras.

Its argument is a folder; it writes MODEL-PRECISION-weights.npz and MODEL-PRECISION-pytorch.npz there. The weights are
all tensors before the first step. Names in the other file: `start/...` tensors before the first step,
`output/...` of each network before it, `gradient/...` of the first step, `first/...` and `end/...` tensors after the
first and the last; `input0`, `input1`; `losses`, one row per step; `num_tensors`, as PyTorch itself counts them;
`norm_count/...`, how many values each batch norm averages. Tensors are in PyTorch's layout, large ones sampled.
initial-pytorch.json says how the weights of a new model are distributed.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mirror_layers import (
    TORCH_KINDS,
    describe,
    name_torch_tensors,
    number_layers,
    order_torch_layers,
    sample,
    save_arrays,
)
from workload_state import read_losses

import bench.models.torch as definitions
from bench.frameworks import pytorch
from mirror_cells import (
    EPSILON,
    KERAS_RUNS,
    NUM_LAYERS,
    NUM_STEPS,
    SMALLER,
    TRAINED,
    VGG16_SIDE,
    list_keras_runs,
    make_mirror_cell,
)

vars(definitions).update(SMALLER)
Arrays = dict[str, np.ndarray]


def make_smaller(name: str, networks: Any) -> None:
    """Do to torchvision's models what SMALLER does to definitions of this project."""
    model = networks.get("model")
    match name:
        case "vit-b-16":
            model.encoder.layers = model.encoder.layers[:NUM_LAYERS]
        case "vgg16":
            model.avgpool.output_size = VGG16_SIDE
            weight = model.classifier[0].weight
            weight.data = weight.data[:, : 512 * VGG16_SIDE**2].clone()
        case "resnet18" | "resnet18-cifar" | "resnet50":
            del model.layer1[2:], model.layer2[1:], model.layer3[1:], model.layer4[1:]


def read_tensors(networks: Any, *, gradients: bool = False) -> Arrays:
    """Return NumPy views of the tensors by name."""
    named = name_torch_tensors(networks, gradients=gradients)
    return {name: tensor.detach().numpy() for name, tensor in named.items()}


def sample_tensors(prefix: str, networks: Any, *, gradients: bool = False) -> Arrays:
    """Return samples of the tensors under names with a prefix."""
    arrays = read_tensors(networks, gradients=gradients)
    return {f"{prefix}/{name}": sample(values) for name, values in arrays.items()}


def prepare_workload(workload: Any, precision: str) -> None:
    """Switch dropout off, give norms and zero weights values that show mix-ups, set the precision and Adam's epsilon.

    A last layer that starts at zero would keep all gradients before it at zero.
    """
    generator = torch.Generator().manual_seed(1)
    for name, tensor in name_torch_tensors(workload.task.networks).items():
        if "norm" in name:
            low, high = (0.5, 1.5) if name.endswith(("weight", "variance")) else (-0.2, 0.2)
            tensor.data.uniform_(low, high, generator=generator)
        elif tensor.ndim > 1 and not tensor.any():
            tensor.data.normal_(0.0, 0.02, generator=generator)
    for part in workload.task.parts:
        for module in part.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        part.to(getattr(torch, precision))
    dtype = getattr(torch, precision)
    workload.inputs = tuple(tensor.to(dtype) if tensor.is_floating_point() else tensor for tensor in workload.inputs)
    for optimizer in workload.optimizers:
        optimizer.param_groups[0]["eps"] = EPSILON


def run_steps(workload: Any) -> Arrays:
    """Run inference once in every network, and the training steps."""
    networks = workload.task.networks
    arrays = sample_tensors("start", networks)
    arrays |= {f"input{index}": tensor.numpy() for index, tensor in enumerate(workload.inputs)}
    for name, network in networks.items():
        with torch.inference_mode():
            arrays[f"output/{name}"] = network.eval()(workload.inputs[0]).numpy()
        network.train()
    counts = count_norm_values(networks)
    losses = []
    for step in range(NUM_STEPS):
        workload.run_step()
        losses.append(read_losses(workload))
        if step == 0:
            arrays |= sample_tensors("gradient", networks, gradients=True) | sample_tensors("first", networks)
            arrays |= {name: np.array(count) for name, count in counts.items()}
    arrays["num_tensors"] = np.array(count_tensors(networks))
    return arrays | sample_tensors("end", networks) | {"losses": np.array(losses)}


def count_tensors(networks: Any) -> int:
    """Return how many parameters and running statistics the networks hold."""
    names = [name for network in networks.values() for name in network.state_dict()]
    return sum(not name.endswith("num_batches_tracked") for name in names)


def count_norm_values(networks: Any) -> dict[str, int]:
    """Return a dict that the next forward passes fill: how many values each batch norm averages per channel."""
    counts: dict[str, int] = {}

    def watch(name: str, layer: Any) -> None:
        def note(_: Any, inputs: Any, __: Any) -> None:
            counts[f"norm_count/{name}"] = inputs[0].numel() // inputs[0].shape[1]

        layer.register_forward_hook(note)

    for network_name, network in networks.items():
        for name, layer in number_layers(order_torch_layers(network), TORCH_KINDS):
            if name.startswith("norm"):
                watch(f"{network_name}/{name}", layer)
    return counts


def main(folder: Path) -> None:
    """Write the files of every model and precision."""
    framework = pytorch.load(make_mirror_cell(TRAINED[0], "pytorch"), 1)
    initial = {}
    for name, precision in sorted({run for program in KERAS_RUNS for run in list_keras_runs(*program)}):
        workload = framework.build_workload(make_mirror_cell(name, "pytorch"))
        make_smaller(name, workload.task.networks)
        initial[name] = {key: describe(values) for key, values in read_tensors(workload.task.networks).items()}
        prepare_workload(workload, precision)
        save_arrays(folder / f"{name}-{precision}-weights.npz", read_tensors(workload.task.networks))
        save_arrays(folder / f"{name}-{precision}-pytorch.npz", run_steps(workload))
    (folder / "initial-pytorch.json").write_text(json.dumps(initial))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
