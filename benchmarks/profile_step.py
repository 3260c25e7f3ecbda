"""Profiles a cell's step on a GPU and prints the time of its kernels by kind, and the longest of them.

Shows what keeps a step from its roofline: matrix kernels below their peak, kernels that only move memory, or gaps.
PYTHONPATH=images/bench/src python benchmarks/profile_step.py --model resnet18 --precision bf16
"""

import argparse
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, get_args

import torch
from torch.profiler import ProfilerActivity, profile

from bench.frameworks.pytorch import PyTorchWorkload, load
from bench.probes.cpu import count_threads
from bench.registry import MODELS
from bench.schema import Cell, Phase, Precision

NUM_STEPS = 10
NUM_WARMUP_STEPS = 5
NUM_SHOWN = 12
# Parts of kernels' names, in lower case; the first kind that matches counts. Inductor names its kernels after what it
# fused, so `triton_poi_fused_convolution_relu` is bias and ReLU, no convolution: its own templates for those are `tem`.
KINDS = {
    "matrix products written in Triton": ("triton_tem", "triton_mm", "triton_convolution"),
    "normalisation, activation, pooling and other element-wise work": (
        "triton_",
        "bn_fw",
        "bn_bw",
        "batchnorm",
        "batch_norm",
    ),
    "layout changes and copies": ("nchwtonhwc", "nhwctonchw", "memcpy", "memset", "copy_"),
    "optimiser": ("adam", "multi_tensor"),
    "matrix products and convolutions": (
        "gemm",
        "conv",
        "wgrad",
        "dgrad",
        "fprop",
        "cutlass",
        "xmma",
        "nvjet",
        "cudnn",
    ),
    "everything else": ("",),
}


def main() -> None:
    """Print the step's time on the device, its kernels by kind, and the longest of them."""
    cell = read_cell()
    workload = load(cell, count_threads()).build_workload(cell)
    for _ in range(NUM_WARMUP_STEPS):
        workload.run_step()
    workload.synchronize()
    print(f"{cell.slug} on {torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    step_milliseconds = measure_step(workload)
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(NUM_STEPS):
            workload.run_step()
        workload.synchronize()
    kernels = [event for event in profiler.key_averages() if event.self_device_time_total > 0]
    print_kinds(kernels, step_milliseconds)
    print_longest(kernels)


def measure_step(workload: PyTorchWorkload) -> float:
    """Return the milliseconds of a step on the device, without the profiler."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(NUM_STEPS):
        workload.run_step()
    end.record()
    workload.synchronize()
    return float(start.elapsed_time(end)) / NUM_STEPS


def print_kinds(kernels: Iterable[Any], step_milliseconds: float) -> None:
    """Print the milliseconds of a step that go to each kind of kernel, and what is left: gaps between kernels."""
    totals: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for kernel in kernels:
        kind = next(kind for kind, parts in KINDS.items() if any(part in kernel.key.lower() for part in parts))
        totals[kind][0] += kernel.self_device_time_total / 1e3 / NUM_STEPS
        totals[kind][1] += kernel.count / NUM_STEPS
    print(f"step on the device {step_milliseconds:9.3f} ms")
    for kind, (milliseconds, count) in sorted(totals.items(), key=lambda item: -item[1][0]):
        print(f"{milliseconds:9.3f} ms  {milliseconds / step_milliseconds:6.1%}  {count:6.0f} kernels  {kind}")
    rest = step_milliseconds - sum(milliseconds for milliseconds, _ in totals.values())
    print(f"{rest:9.3f} ms  {rest / step_milliseconds:6.1%}  gaps between kernels (below 0: kernels overlap)")


def print_longest(kernels: Iterable[Any]) -> None:
    """Print the kernels with the most time."""
    for kernel in sorted(kernels, key=lambda kernel: -kernel.self_device_time_total)[:NUM_SHOWN]:
        milliseconds = kernel.self_device_time_total / 1e3 / NUM_STEPS
        print(f"{milliseconds:9.3f} ms  {kernel.count / NUM_STEPS:6.0f} x  {kernel.key[:110]}")


def read_cell() -> Cell:
    parser = argparse.ArgumentParser(description="The kernels of one step on a GPU.")
    parser.add_argument("--model", choices=list(MODELS), default="resnet18")
    parser.add_argument("--phase", choices=get_args(Phase), default="train")
    parser.add_argument("--precision", choices=get_args(Precision), default="bf16")
    parser.add_argument("--mode", choices=("eager", "compiled"), default="compiled")
    parser.add_argument("--batch-size", type=int, default=64)
    chosen = parser.parse_args()
    spec = MODELS[chosen.model]
    return Cell(
        model=chosen.model,
        framework="pytorch",
        device="gpu",
        phase=chosen.phase,
        precision=chosen.precision,
        mode=chosen.mode,
        batch_size=chosen.batch_size,
        input_size=spec.input_size,
        num_classes=spec.num_classes,
    )


if __name__ == "__main__":
    main()
