"""Made-up runs of the study's work, on the stated hardware and on other, and what the claims say of them."""

from pathlib import Path
from typing import Any

from bench.schema import Environment, Result
from collector.claims.page import evaluate_claims
from collector.claims.study import load_study
from collector.claims.verdicts import ClaimResult
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


def evaluate(tmp_path: Path, *results: Result) -> dict[str, ClaimResult]:
    """Return the results of the claims by their ids."""
    summary = summarize_cells(collect_results(tmp_path, *results))
    claim_results = evaluate_claims(summary, forecast=None)
    return {claim.id: result for claim, result in zip(load_study().claims, claim_results, strict=True)}


def make_devices(
    cpu_seconds: float | tuple[float, ...],
    gpu_seconds: float,
    gpu_environment: Environment = H100,
    host: Environment = HOST,
    flops_per_step: int = 10**9,
    **fields: Any,
) -> list[Result]:
    """Return three repeats on a CPU and on a GPU; `cpu_seconds`: one time, or that of each repeat."""
    times = cpu_seconds if isinstance(cpu_seconds, tuple) else (cpu_seconds,) * 3
    base = {"framework": "tensorflow", "mode": "graph"} | fields
    gpu, cpu = (make_cell(**(base | {"device": device})) for device in ("gpu", "cpu"))
    return [
        *make_repeats(
            cpu,
            *times,
            environment=host,
            cpu_use=make_cpu_use(energy_joules=1920.0),
            roofline=make_roofline(flops_per_step=flops_per_step),
        ),
        *make_repeats(
            gpu,
            *[gpu_seconds] * len(times),
            environment=gpu_environment,
            roofline=make_roofline(flops_per_step=flops_per_step, peak_flops_per_second=6e12),
        ),
    ]


def make_latencies(*ratios: float) -> list[Result]:
    """Return PyTorch eager at 1 s and TensorFlow's graph mode at `ratios`, one batch each, on a GPU."""
    cells = [(make_cell(device="gpu", phase="infer", batch_size=2**n), ratio) for n, ratio in enumerate(ratios)]
    results: list[Result] = []
    for cell, ratio in cells:
        graph = make_cell(device="gpu", phase="infer", batch_size=cell.batch_size, framework="tensorflow", mode="graph")
        results += make_repeats(cell, 1.0, 1.0, environment=H100)
        results += make_repeats(graph, ratio, ratio, environment=H100)
    return results


def make_modes(
    eager: float | None, graph: float | None, pytorch: float | None, compiled: float | None = None, **fields: Any
) -> list[Result]:
    """Return inference on a GPU: TensorFlow's modes and PyTorch eager; None: not measured."""
    base = {"device": "gpu", "phase": "infer"} | fields
    times = {
        ("tensorflow", "eager"): eager,
        ("tensorflow", "graph"): graph,
        ("tensorflow", "compiled"): compiled,
        ("pytorch", "eager"): pytorch,
    }
    return [
        result
        for (framework, mode), seconds in times.items()
        if seconds is not None
        for result in make_repeats(
            make_cell(**base, framework=framework, mode=mode), seconds, seconds, environment=H100
        )
    ]
