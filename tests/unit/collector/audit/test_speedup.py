"""The claims of GPU over CPU."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.schema import Environment
from collector.audit.claims import evaluate_speedup
from collector.audit.measured import gather_context
from collector.audit.study import Study, load_study
from collector.audit.table import StatedReading
from collector.results.summary import summarize_cells
from factories import make_cell, make_environment
from measured_runs import collect_results, make_repeats
from study_runs import (
    IMPOSSIBLE,
    T4,
    VGG16,
    VGG16_FLOPS,
    XEON,
    evaluate,
    evaluate_unmeasured,
    make_devices,
)


def find_readings(study: Study, model: str) -> list[StatedReading]:
    """Return the readings of a training step."""
    return next(row.list_readings() for row in study.rows if (row.model, row.phase) == (model, "train"))


def change_readings(model: str, *readings: StatedReading) -> Study:
    """Return the study with these readings of a model's training steps."""
    rows = tuple(
        row.model_copy(update={"readings": readings}) if (row.model, row.phase) == (model, "train") else row
        for row in load_study().rows
    )
    return load_study().model_copy(update={"rows": rows})


@pytest.mark.parametrize(
    ("seconds", "verdict", "words"),
    [
        (24.0, "reproduced", "240 to 240 times (inside the band)"),  # of 221.4 to 270.6
        (9.0, "not reproduced", "90.0 to 90.0 times (outside the band)"),
        # 246x in the middle, and ends that no band of 10 % holds.
        ((20.0, 24.6, 30.0), "not decided", "times (too wide to decide, across an edge of the band)"),
    ],
)
def test_a_speedup_on_the_stated_hardware_is_decided_by_its_whole_interval(
    tmp_path: Path, seconds: float | tuple[float, ...], verdict: str, words: str
) -> None:
    result = evaluate(tmp_path, *make_devices(seconds, 0.1, T4, XEON))["speedup-conv6"]
    assert result.verdict == verdict
    assert words in result.reason
    assert "the band 221 to 271 times" in result.reason


def test_what_was_measured_on_the_stated_hardware_goes_before_implausible_arithmetic(tmp_path: Path) -> None:
    results = make_devices(116.0, 1.0, T4, XEON, flops_per_step=VGG16_FLOPS, **VGG16)
    assert evaluate(tmp_path, *results)["speedup-vgg16"].verdict == "reproduced"


def test_what_is_impossible_stays_so_whatever_was_measured(tmp_path: Path) -> None:
    summary = summarize_cells(collect_results(tmp_path, *make_devices(464.0, 4.0, T4, XEON, **VGG16)))
    # Four times the work: 4.86 times the T4's peak.
    study = change_readings("vgg16", StatedReading(input_size=224, flops_per_sample=4 * VGG16_FLOPS / 64))
    context = replace(gather_context(summary), study=study)
    claim = next(claim for claim in study.claims if claim.id == "speedup-vgg16")
    assert evaluate_speedup(claim, context).verdict == IMPOSSIBLE


def test_operations_are_those_of_the_cells_whatever_a_record_says(tmp_path: Path) -> None:
    records = make_repeats(make_cell(**VGG16), 90.0, 91.0)
    summary = summarize_cells(collect_results(tmp_path, *records)).assign(flops_per_step=1)
    (reading,) = find_readings(load_study().count_anew(summary), "vgg16")
    assert reading.flops_per_sample == pytest.approx(VGG16_FLOPS / 64, rel=0.01)
    assert reading != find_readings(load_study(), "vgg16")[0]


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
    summary = summarize_cells(collect_results(tmp_path, *make_repeats(make_cell(model="resnet18-cifar"), 0.1)))
    context = replace(gather_context(summary), study=change_readings("conv6", *kept))
    assert any(line.endswith(words) for line in evaluate_speedup(load_study().claims[0], context).arithmetic)


def test_a_baseline_under_a_tenth_of_the_lowest_peak_is_a_finding_of_its_own(tmp_path: Path) -> None:
    result = evaluate_unmeasured(tmp_path)["speedup-conv6"]
    (finding,) = result.findings
    assert finding.title == "too slow to be a baseline at 32 px"
    # 64 x 0.9233 GFLOP in 35.12342 s are 1.68 GFLOP/s: of 198.4 and of 70
    assert "at 32 px imply 1.68 GFLOP/s, 0.848 % of the 198 GFLOP/s bound" in finding.reason
    assert "2.40 % of the lowest peak that it may have, 70.0 GFLOP/s" in finding.reason
    # 8.1 TFLOP/s x 142.67 / 35123.42
    assert any("which the CPU then did at 32.9 GFLOP/s or less" in line for line in result.arithmetic)


@pytest.mark.parametrize(
    "host",
    [
        make_environment(num_threads=4, versions=T4.versions),
        make_environment(cpu_model="AMD EPYC 7B12", versions=T4.versions),
    ],
)
def test_the_stated_cpu_is_a_xeon_with_two_threads(tmp_path: Path, host: Environment) -> None:
    result = evaluate(tmp_path, *make_devices(24.0, 0.1, T4, host))["speedup-conv6"]
    assert result.verdict == "not tested here"
    assert "measured here is other hardware" in result.reason


@pytest.mark.parametrize(
    "fields",
    [
        {"batch_size": 8},
        {"input_size": 64},
        {"data_dir": "/data/cifar"},
        {"mode": "compiled"},
        {"framework": "pytorch", "mode": "eager"},
    ],
)
def test_only_the_studys_own_configuration_decides(tmp_path: Path, fields: dict[str, Any]) -> None:
    result = evaluate(tmp_path, *make_devices(24.6, 0.1, T4, XEON, **fields))["speedup-conv6"]
    assert result.verdict == "not tested here"
    assert "measured here is other work than the study's" in result.reason
    assert len(result.measured) == 1
