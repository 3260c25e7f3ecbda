"""Made-up runs of the study's work, on the stated hardware and on other, and what the claims say of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.schema import Environment, Framework, Result
from collector.audit.claims import ClaimResult, evaluate_claims, gather_context
from collector.results.summary import summarize_cells
from factories import make_cell, make_cpu_use, make_environment, make_gpu, make_roofline
from measured_runs import collect_results, make_repeats

IMPOSSIBLE = "impossible on the stated hardware"
IMPLAUSIBLE = "implausible on the stated hardware"
WITHOUT_WINOGRAD = "implausible without Winograd"
H100 = make_environment(gpus=(make_gpu(name="NVIDIA H100"),), versions={"torch": "2.11.0", "tensorflow": "2.21.0"})
T4 = make_environment(gpus=(make_gpu(name="Tesla T4"),), versions={"torch": "2.11.0", "tensorflow": "2.21.0"})
XEON = make_environment(versions=T4.versions)
HOST = make_environment(num_threads=16, versions={"torch": "2.11.0", "tensorflow": "2.21.0"})
VGG16_FLOPS = 64 * 92_820_000_000  # of a training step at batch 64
VGG16: dict[str, Any] = {"model": "vgg16", "input_size": 224, "num_classes": 1000, "batch_size": 64}
# The study's own work, Conv6 at 32 px.
WORK: dict[str, dict[str, Any]] = {
    "conv6": {"model": "conv6", "input_size": 32, "num_classes": 10, "batch_size": 64},
    "vgg16": VGG16,
    "resnet18": {"model": "resnet18", "input_size": 224, "num_classes": 1000, "batch_size": 64},
    "cyclegan": {"model": "cyclegan", "input_size": 256, "num_classes": None, "batch_size": 1},
}
# TensorFlow's latency over PyTorch's on the GPU, by the study's table.
TABLE_RATIOS = {"conv6": 19.38 / 23.82, "vgg16": 66.24 / 70.79, "resnet18": 64.17 / 71.18, "cyclegan": 4.63 / 4.93}


def evaluate(tmp_path: Path, *results: Result) -> dict[str, ClaimResult]:
    summary = summarize_cells(collect_results(tmp_path, *results))
    return {result.claim.id: result for result in evaluate_claims(gather_context(summary))}


def make_devices(
    cpu_seconds: float | tuple[float, ...],
    gpu_seconds: float,
    gpu_environment: Environment = H100,
    host: Environment = HOST,
    flops_per_step: int | None = None,
    **fields: Any,
) -> list[Result]:
    """Return three repeats on a CPU and on a GPU; `cpu_seconds`: one time, or that of each repeat."""
    times = cpu_seconds if isinstance(cpu_seconds, tuple) else (cpu_seconds,) * 3
    base = {"framework": "tensorflow", "mode": "graph"} | fields
    work = {} if flops_per_step is None else {"flops_per_step": flops_per_step}
    gpu, cpu = (make_cell(**(base | {"device": device})) for device in ("gpu", "cpu"))
    return [
        *make_repeats(
            cpu,
            *times,
            environment=host,
            cpu_use=make_cpu_use(energy_joules=1920.0),
            roofline=make_roofline(**work, peak_flops_per_second=4.8e10),
        ),
        *make_repeats(
            gpu,
            *[gpu_seconds] * len(times),
            environment=gpu_environment,
            roofline=make_roofline(**work, peak_flops_per_second=6e12),
        ),
    ]


def make_inference(
    framework: Framework,
    mode: str,
    seconds: Mapping[str, float],
    *,
    environment: Environment = H100,
    **fields: Any,
) -> list[Result]:
    """Return three repeats per model of inference at the study's work; `seconds`: the time of each model."""
    return [
        result
        for model, time in seconds.items()
        for result in make_repeats(
            make_cell(
                **(WORK[model] | {"device": "gpu", "phase": "infer", "framework": framework, "mode": mode} | fields)
            ),
            *[time] * 3,
            environment=environment,
        )
    ]


def make_ratios(ratios: Mapping[str, float], **fields: Any) -> list[Result]:
    """Return PyTorch eager at 1 s and TensorFlow's graph mode at `ratios`, model by model."""
    eager = make_inference("pytorch", "eager", dict.fromkeys(ratios, 1.0), **fields)
    return [*eager, *make_inference("tensorflow", "graph", ratios, **fields)]
