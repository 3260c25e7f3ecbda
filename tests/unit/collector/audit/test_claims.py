"""The study's claims: what arithmetic alone says of them, and what runs do."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.schema import Environment, Framework, Result
from collector.audit.claims import ClaimResult, evaluate_claims, evaluate_ratio, gather_context, load_study
from collector.audit.rows import audit_table
from collector.audit.table import StatedReading
from collector.forecast.fit import fit_polynomial
from collector.forecast.series import load_series
from collector.results.summary import summarize_cells
from factories import make_cell, make_environment, make_gpu, make_validity
from measured_runs import collect_results, make_repeats

IMPLAUSIBLE = "implausible on the stated hardware"
H100 = make_environment(gpus=(make_gpu(name="NVIDIA H100"),), versions={"torch": "2.11.0", "tensorflow": "2.21.0"})
T4 = make_environment(gpus=(make_gpu(name="Tesla T4"),), versions=H100.versions)
XEON = make_environment(versions=H100.versions)
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
CLAIMED = {"conv6": 200.0, "vgg16": 100.0, "resnet18": 50.0, "cyclegan": 10.0}
FASTER = {"conv6": 0.80, "vgg16": 0.90, "resnet18": 0.85, "cyclegan": 0.85}  # 15 % on average
BEYOND = {"conv6": 0.70, "vgg16": 0.80, "resnet18": 0.75, "cyclegan": 0.75}  # 25 %
SLOWER = dict.fromkeys(FASTER, 1.2)


def evaluate(tmp_path: Path, *results: Result) -> dict[str, ClaimResult]:
    summary = summarize_cells(collect_results(tmp_path, *results))
    return {result.claim.id: result for result in evaluate_claims(gather_context(summary))}


def make_devices(
    cpu_seconds: float | tuple[float, ...], gpu_seconds: float, host: Environment = XEON, **fields: Any
) -> list[Result]:
    """Return three repeats on a CPU and on a T4; `cpu_seconds`: one time, or that of each repeat."""
    times = cpu_seconds if isinstance(cpu_seconds, tuple) else (cpu_seconds,) * 3
    base = {"framework": "tensorflow", "mode": "graph"} | fields
    gpu, cpu = (make_cell(**(base | {"device": device})) for device in ("gpu", "cpu"))
    gpu_times = [gpu_seconds] * len(times)
    return [*make_repeats(cpu, *times, environment=host), *make_repeats(gpu, *gpu_times, environment=T4)]


def make_inference(framework: Framework, mode: str, seconds: Mapping[str, float], **fields: Any) -> list[Result]:
    """Return three repeats per model of inference at the study's work on an H100; `seconds`: the time of each model."""
    base = {"device": "gpu", "phase": "infer", "framework": framework, "mode": mode} | fields
    return [
        result
        for model, time in seconds.items()
        for result in make_repeats(make_cell(**(WORK[model] | base)), *[time] * 3, environment=H100)
    ]


def make_ratios(ratios: Mapping[str, float], **fields: Any) -> list[Result]:
    """Return PyTorch eager at 1 s and TensorFlow's graph mode at `ratios`, model by model."""
    eager = make_inference("pytorch", "eager", dict.fromkeys(ratios, 1.0), **fields)
    return [*eager, *make_inference("tensorflow", "graph", ratios, **fields)]


@pytest.fixture(scope="module")
def unmeasured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ClaimResult]:
    """What arithmetic alone says: the results of the claims by their ids, from a run of none of their models."""
    return evaluate(tmp_path_factory.mktemp("run"), *make_repeats(make_cell(model="resnet18-cifar"), 0.1))


def test_without_runs_arithmetic_alone_decides(unmeasured: dict[str, ClaimResult]) -> None:
    decided = {
        "speedup-vgg16": "implausible without Winograd",
        "inference-vgg16": IMPLAUSIBLE,
        "phases": IMPLAUSIBLE,
        "table": IMPLAUSIBLE,
        "tf32": "peak rates only",
        "v100": "peak rates only",
        "memory": "not decided",
    }
    expected = dict.fromkeys((claim.id for claim in load_study().claims), "not tested here") | decided
    assert {name: result.verdict for name, result in unmeasured.items()} == expected


def test_the_stated_claim_about_the_table_has_what_arithmetic_says_of_its_rows(
    unmeasured: dict[str, ClaimResult],
) -> None:
    assert Counter(row.verdict for row in audit_table(load_study())) == {"possible": 23, "implausible": 5}
    assert "5 of its 28 times" in unmeasured["table"].reason
    assert (
        "122 % of the 8.10 TFLOP/s of the Tesla T4 at fp32: out of reach of direct"
        in unmeasured["speedup-vgg16"].reason
    )


def test_the_projections_of_memory_are_those_of_polynomials_through_the_largest_gpus(
    unmeasured: dict[str, ClaimResult],
) -> None:
    known = load_series().observations
    values = []
    for last_year, fact in zip((2021, 2022, 2023, 2024), unmeasured["memory"].arithmetic, strict=True):
        rows = known[known["year"] <= last_year]
        dates, sizes = (rows[name].to_numpy(dtype=float) for name in ("date", "value"))
        values += [fit_polynomial(dates, sizes, np.array([2025.5]), degree)[0] for degree in (2, 3, 4)]
        assert "give {:.0f}, {:.0f} and {:.0f} GB".format(*values[-3:]) in fact
    assert known.loc[known["year"] == 2025, "value"].to_list() == [288]
    assert sum(288 / 1.25 <= value <= 288 * 1.25 for value in values) == 6


def make_speedups(speedups: dict[str, float]) -> list[Result]:
    return [result for model, speedup in speedups.items() for result in make_devices(speedup, 1.0, **WORK[model])]


def make_phases(seconds: float) -> list[Result]:
    """Return a training step of VGG16 of so many seconds and inference of 1 s, on the stated CPU."""
    results = []
    for phase, time in (("train", seconds), ("infer", 1.0)):
        cell = make_cell(**VGG16, framework="tensorflow", mode="graph", phase=phase)
        results += make_repeats(cell, *[time] * 3, environment=XEON)
    return results


def make_wide_mean() -> list[Result]:
    """Return latencies of which that of Conv6 varies so much that the mean may be anything."""
    graph = make_cell(device="gpu", phase="infer", framework="tensorflow", mode="graph")
    others = {model: ratio for model, ratio in FASTER.items() if model != "conv6"}
    return [
        *make_inference("pytorch", "eager", dict.fromkeys(FASTER, 1.0)),
        *make_inference("tensorflow", "graph", others),
        *make_repeats(graph, 0.5, 0.8, 1.2, environment=H100),
    ]


def throttle(results: list[Result]) -> list[Result]:
    return [result.model_copy(update={"validity": make_validity("throttled")}) for result in results]


def on_host(**fields: Any) -> Callable[[], list[Result]]:
    return lambda: make_devices(24.0, 0.1, make_environment(versions=T4.versions, **fields))


def with_fields(**fields: Any) -> Callable[[], list[Result]]:
    return lambda: make_devices(24.6, 0.1, **fields)


OTHER_HARDWARE, OTHER_WORK = "measured here is other hardware", "measured here is other work than the study's"
AT_OWN_WORK = "on NVIDIA H100, Keras on TensorFlow in graph mode over PyTorch eager at the study's own work: "
CASES: Sequence[tuple[str, Callable[[], list[Result]], str, str]] = [
    ("speedup-conv6", lambda: make_devices(24.0, 0.1), "reproduced", "inside the band); the band 221 to 271 times"),
    ("speedup-conv6", lambda: make_devices(9.0, 0.1), "not reproduced", "90.0 to 90.0 times (outside"),
    # 246x in the middle, and ends that no band of 10 % holds.
    ("speedup-conv6", lambda: make_devices((20.0, 24.6, 30.0), 0.1), "not decided", "too wide to decide"),
    # Measured goes before implausible arithmetic.
    ("speedup-vgg16", lambda: make_devices(116.0, 1.0, **VGG16), "reproduced", "inside the band"),
    ("speedup-conv6", on_host(num_threads=4), "not tested here", OTHER_HARDWARE),
    ("speedup-conv6", on_host(cpu_model="AMD EPYC 7B12"), "not tested here", OTHER_HARDWARE),
    ("speedup-conv6", with_fields(batch_size=8), "not tested here", OTHER_WORK),
    ("speedup-conv6", with_fields(input_size=64), "not tested here", OTHER_WORK),
    ("speedup-conv6", with_fields(data_dir="/data/cifar"), "not tested here", OTHER_WORK),
    ("speedup-conv6", with_fields(mode="compiled"), "not tested here", OTHER_WORK),
    ("speedup-conv6", with_fields(framework="pytorch", mode="eager"), "not tested here", OTHER_WORK),
    ("lightness", lambda: make_speedups(CLAIMED), "reproduced", "conv6 gains more than vgg16, conv6 gains more than"),
    # Within a class the order is free.
    ("lightness", lambda: make_speedups(CLAIMED | {"vgg16": 60.0, "resnet18": 90.0}), "reproduced", "vgg16 gains more"),
    ("lightness", lambda: make_speedups(CLAIMED | {"vgg16": 300.0}), "not reproduced", "conv6 gains less than vgg16"),
    ("lightness", lambda: make_speedups(CLAIMED | {"cyclegan": 70.0}), "not reproduced", "resnet18 gains less than"),
    ("lightness", lambda: make_speedups({"conv6": 200.0}), "not tested here", "there: vgg16, resnet18, cyclegan"),
    ("phases", lambda: make_phases(25.0), "reproduced", "the band 22.5 to 27.5"),
    ("phases", lambda: make_phases(3.0), "not reproduced", "the band 22.5 to 27.5"),
    # 18.6, 6.4, 9.8 and 6.1 %
    ("latency", lambda: make_ratios(TABLE_RATIOS), "reproduced", f"{AT_OWN_WORK}arithmetic mean 10.3 % lower"),
    ("latency", lambda: make_ratios(FASTER), "reproduced", "arithmetic mean 15.0 % lower"),
    ("latency", lambda: make_ratios(BEYOND), "not reproduced", "arithmetic mean 25.0 % lower"),
    ("latency", lambda: make_ratios(SLOWER), "not reproduced", "the band is 10.0 to 20.0 %"),
    ("latency", make_wide_mean, "not decided", "(95 % interval "),
    ("latency", lambda: throttle(make_ratios(TABLE_RATIOS)), "not tested here", ""),
]


@pytest.mark.parametrize(("name", "make_results", "verdict", "words"), CASES)
def test_runs_decide_a_claim_at_its_own_configuration(
    tmp_path: Path, name: str, make_results: Callable[[], list[Result]], verdict: str, words: str
) -> None:
    result = evaluate(tmp_path, *make_results())[name]
    assert result.verdict == verdict
    assert words in result.reason


@pytest.mark.parametrize("fields", [{"batch_size": 8}, {"precision": "fp16"}, {"data_dir": "/data/cifar"}])
def test_cells_beside_the_stated_configuration_never_decide(tmp_path: Path, fields: dict[str, Any]) -> None:
    own = [*make_ratios(FASTER), *make_inference("tensorflow", "unfused", dict.fromkeys(FASTER, 1.0))]
    beside = [*make_ratios(SLOWER, **fields), *make_inference("tensorflow", "unfused", SLOWER, **fields)]
    results = evaluate(tmp_path, *own, *beside)
    assert (results["latency"].verdict, results["fusion"].verdict) == ("reproduced", "reproduced")
    alone = evaluate(tmp_path / "alone", *beside)
    assert (alone["latency"].verdict, alone["fusion"].verdict) == ("not tested here", "not tested here")


def test_what_is_impossible_stays_so_whatever_was_measured(tmp_path: Path) -> None:
    # Four times the work: 4.86 times the T4's peak.
    study = load_study()
    reading = StatedReading(input_size=224, flops_per_sample=4 * VGG16_FLOPS / 64)
    rows = (row.model_copy(update={"readings": (reading,)} if row.model == "vgg16" else {}) for row in study.rows)
    context = gather_context(summarize_cells(collect_results(tmp_path, *make_devices(464.0, 4.0, **VGG16))))
    (claim,) = (claim for claim in study.claims if claim.id == "speedup-vgg16")
    found = evaluate_ratio(claim, replace(context, study=study.model_copy(update={"rows": tuple(rows)})))
    assert found.verdict == "impossible on the stated hardware"
