"""The study's claims: what arithmetic alone says of them, and what runs do."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.schema import Result
from collector.audit.claims import ClaimResult, evaluate_ratio, gather_context
from collector.audit.study import Study, load_study
from collector.audit.table import StatedReading
from collector.forecast.fit import fit_polynomial
from collector.forecast.series import load_series
from collector.results.summary import summarize_cells
from factories import make_cell, make_environment, make_roofline, make_validity
from measured_runs import collect_results, make_repeats
from study_runs import (
    H100,
    IMPLAUSIBLE,
    IMPOSSIBLE,
    T4,
    TABLE_RATIOS,
    VGG16,
    VGG16_FLOPS,
    WITHOUT_WINOGRAD,
    WORK,
    XEON,
    evaluate,
    make_devices,
    make_inference,
    make_ratios,
)

CLAIMED = {"conv6": 200.0, "vgg16": 100.0, "resnet18": 50.0, "cyclegan": 10.0}
FASTER = {"conv6": 0.80, "vgg16": 0.90, "resnet18": 0.85, "cyclegan": 0.85}  # 15 % on average
BEYOND = {"conv6": 0.70, "vgg16": 0.80, "resnet18": 0.75, "cyclegan": 0.75}  # 25 %
SLOWER = dict.fromkeys(FASTER, 1.2)


@pytest.fixture(scope="module")
def unmeasured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ClaimResult]:
    """What arithmetic alone says: the results of the claims by their ids, from a run of none of their models."""
    return evaluate(tmp_path_factory.mktemp("run"), *make_repeats(make_cell(model="resnet18-cifar"), 0.1))


def test_without_runs_arithmetic_alone_decides(unmeasured: dict[str, ClaimResult]) -> None:
    decided = {
        "speedup-vgg16": WITHOUT_WINOGRAD,
        "inference-vgg16": IMPLAUSIBLE,
        "phases": IMPLAUSIBLE,
        "table": IMPLAUSIBLE,
        "tf32": "peak rates only",
        "v100": "peak rates only",
        "memory": "not decided",
    }
    expected = dict.fromkeys((claim.id for claim in load_study().claims), "not tested here") | decided
    assert {name: result.verdict for name, result in unmeasured.items()} == expected


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("speedup-vgg16", "122 % of the 8.10 TFLOP/s of the Tesla T4 at fp32: out of reach of direct"),
        ("table", "5 of its 28 times"),
        ("table", "0 of them even by Winograd's F(4x4, 3x3)"),
        ("phases", "TensorFlow infer on the CPU: 64 images x 30.9 GFLOP / 2,789.17 ms = 710 GFLOP/s, 555 %"),
        # 69,875.21 / 2,789.17; three forward passes to one
        ("phases", "vgg16, TensorFlow on the CPU: 25.1 to 1 in time, 3.00 to 1 in operations"),
        # 452.89 / 4.63; 1885 / 99.1 and 318.43 / 12.0964
        ("phases", "cyclegan, TensorFlow on the GPU: 97.8 to 1 in time, 19.0 or 26.3 to 1 in operations"),
        # 8,100 over 70 and over 128 GFLOP/s
        ("speedup-conv6", "63.3 to 116 times apart: 246x needs a CPU that stays 2.13 to 3.89 times further below"),
        # 64 x 0.9233 GFLOP in 35.12342 s are 1.68 GFLOP/s: of 198.4 and of 70
        (
            "speedup-conv6",
            "too slow to be a baseline at 32 px: TensorFlow train on the CPU: 32 px: 64 images x 0.923 GFLOP",
        ),
        ("speedup-conv6", "2.40 % of the lowest peak that it may have, 70.0 GFLOP/s"),
        # 69,875.21 / 603.54 and 10,127.83 / 198.42; 2 x 15.47 and 2 x 1.814 GMAC
        ("lightness", "vgg16 computes more than resnet18 under every reading, 30.9 against 3.63 GFLOP"),
        ("lightness", "its own table disagrees: "),
        ("lightness", "116x against 51.0x"),
    ],
)
def test_the_arithmetic_of_a_claim_is_shown(unmeasured: dict[str, ClaimResult], name: str, words: str) -> None:
    result = unmeasured[name]
    findings = (f"{finding.title}: {finding.reason}" for finding in result.findings)
    assert words in "\n".join([result.reason, *findings, *result.arithmetic])


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
    return [
        result for model, speedup in speedups.items() for result in make_devices(speedup, 1.0, T4, XEON, **WORK[model])
    ]


def make_phases(seconds: float) -> list[Result]:
    """Return a training step of VGG16 of so many seconds and inference of 1 s, on the stated CPU."""
    results = []
    for phase, time, flops in (("train", seconds, VGG16_FLOPS), ("infer", 1.0, VGG16_FLOPS // 3)):
        cell = make_cell(**VGG16, framework="tensorflow", mode="graph", phase=phase)
        results += make_repeats(cell, *[time] * 3, environment=XEON, roofline=make_roofline(flops_per_step=flops))
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
    return lambda: make_devices(24.0, 0.1, T4, make_environment(versions=T4.versions, **fields))


def with_fields(**fields: Any) -> Callable[[], list[Result]]:
    return lambda: make_devices(24.6, 0.1, T4, XEON, **fields)


OTHER_HARDWARE, OTHER_WORK = "measured here is other hardware", "measured here is other work than the study's"
AT_OWN_WORK = "on NVIDIA H100, Keras on TensorFlow in graph mode over PyTorch eager at the study's own work: "
CASES: Sequence[tuple[str, Callable[[], list[Result]], str, str]] = [
    ("speedup-conv6", lambda: make_devices(24.0, 0.1, T4, XEON), "reproduced", "240 to 240 times (inside the band)"),
    ("speedup-conv6", lambda: make_devices(24.0, 0.1, T4, XEON), "reproduced", "the band 221 to 271 times"),
    ("speedup-conv6", lambda: make_devices(9.0, 0.1, T4, XEON), "not reproduced", "90.0 to 90.0 times (outside"),
    # 246x in the middle, and ends that no band of 10 % holds.
    ("speedup-conv6", lambda: make_devices((20.0, 24.6, 30.0), 0.1, T4, XEON), "not decided", "too wide to decide"),
    # Measured goes before implausible arithmetic.
    (
        "speedup-vgg16",
        lambda: make_devices(116.0, 1.0, T4, XEON, flops_per_step=VGG16_FLOPS, **VGG16),
        "reproduced",
        "inside the band",
    ),
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


def find_readings(study: Study, model: str) -> list[StatedReading]:
    """Return the readings of a training step."""
    return next(row.list_readings() for row in study.rows if (row.model, row.phase) == (model, "train"))


def evaluate_read(tmp_path: Path, name: str, *readings: StatedReading, results: Sequence[Result]) -> ClaimResult:
    """Return the result of a speedup where its model's training steps are read so."""
    claim = next(claim for claim in load_study().claims if claim.id == name)
    rows = tuple(
        row.model_copy(update={"readings": readings}) if (row.model, row.phase) == (claim.model, "train") else row
        for row in load_study().rows
    )
    context = gather_context(summarize_cells(collect_results(tmp_path, *results)))
    return evaluate_ratio(claim, replace(context, study=load_study().model_copy(update={"rows": rows})))


def test_what_is_impossible_stays_so_whatever_was_measured(tmp_path: Path) -> None:
    # Four times the work: 4.86 times the T4's peak.
    reading = StatedReading(input_size=224, flops_per_sample=4 * VGG16_FLOPS / 64)
    results = make_devices(464.0, 4.0, T4, XEON, **VGG16)
    assert evaluate_read(tmp_path, "speedup-vgg16", reading, results=results).verdict == IMPOSSIBLE


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        # At 224 px the GPU's time is too short, at 32 px the CPU's too long: a reading for each side would excuse both.
        (("224 px", "32 px"), "0 of 2 readings do"),
        (("224 px", "32 px", "224 px with 397K parameters"), "1 of 3 readings does (224 px with 397K parameters)"),
    ],
)
def test_both_times_of_a_speedup_have_one_reading(tmp_path: Path, labels: tuple[str, ...], words: str) -> None:
    kept = [reading for reading in find_readings(load_study(), "conv6") if reading.label in labels]
    results = make_repeats(make_cell(model="resnet18-cifar"), 0.1)
    found = evaluate_read(tmp_path, "speedup-conv6", *kept, results=results)
    assert any(line.endswith(words) for line in found.arithmetic)
