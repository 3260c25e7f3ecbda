"""The verdict by measurement: which cells are of a row's work, and whether they agree with it."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from audit_tables import audit_row, make_row
from bench.schema import Environment, Verdict
from collector.audit.table import StatedDevice, StatedReading
from collector.results.summary import summarize_cells
from factories import make_cell, make_environment, make_gpu, make_validity
from measured_runs import collect_results, make_repeats

T4 = make_environment(gpus=(make_gpu(name="Tesla T4"),))
CELL: dict[str, Any] = {
    "model": "resnet50",
    "input_size": 224,
    "num_classes": 1000,
    "batch_size": 64,
    "phase": "infer",
    "device": "gpu",
}
ROW: dict[str, Any] = {
    "device": "T4",
    "model": "resnet50",
    "batch_size": 64,
    "framework": "PyTorch",
    "seconds": None,
    "milliseconds": 150.0,
}


def summarize(
    tmp_path: Path, *seconds: float, environment: Environment = T4, verdicts: tuple[Verdict, ...] = (), **overrides: Any
) -> pd.DataFrame:
    """Return the summary of one cell on a T4 with these medians of its repeats."""
    conditions = {"environment": environment, "validity": make_validity(*verdicts)}
    results = make_repeats(make_cell(**(CELL | overrides)), *(seconds or (0.149, 0.150, 0.151)), **conditions)
    return summarize_cells(collect_results(tmp_path, *results))


@pytest.mark.parametrize(
    ("milliseconds", "verdict"),
    [(150.0, "reproduced"), (160.0, "reproduced"), (300.0, "not reproduced"), (75.0, "not reproduced")],
)
def test_a_figure_inside_the_widened_interval_is_reproduced(tmp_path: Path, milliseconds: float, verdict: str) -> None:
    audited = audit_row(make_row(**ROW | {"milliseconds": milliseconds}), summary=summarize(tmp_path))
    assert (audited.arithmetic.verdict, audited.measured.verdict, audited.verdict) == ("possible", verdict, verdict)
    assert "PyTorch eager at size 224" in audited.measured.reason


@pytest.mark.parametrize(
    "overrides",
    [
        {"batch_size": 32},
        {"input_size": 192},
        {"phase": "train"},
        {"precision": "tf32"},
        {"framework": "tensorflow", "mode": "graph"},
        {"data_dir": "/data"},
        {"environment": make_environment(gpus=(make_gpu(name="NVIDIA L4"),))},
        {"verdicts": ("throttled",)},
    ],
    ids=lambda overrides: next(iter(overrides)),
)
def test_a_cell_of_other_work_or_on_another_device_says_nothing(tmp_path: Path, overrides: dict[str, Any]) -> None:
    audited = audit_row(make_row(**ROW), summary=summarize(tmp_path, **overrides))
    assert (audited.measured.verdict, audited.verdict) == ("not tested", "possible")
    assert audited.reasons == ("not tested: no cell of this work, measured on this device under sound conditions",)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"framework": "tensorrt"}, "no cell measures the framework 'tensorrt'"),
        ({"precision": "int8"}, "no cell measures int8"),
        ({"precision": "amp"}, "amp casts weights in every step"),
        ({"batch_size": None, "milliseconds": None, "samples_per_second": 400.0}, "the row gives no batch size"),
        ({"model": None, "flops_per_sample": 8e9}, "the row names no model of the registry"),
        (
            {"readings": (StatedReading(flops_per_sample=1e9, is_model=False),)},
            "no cell of this work, measured on this device under sound conditions",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_no_cell_can_answer_is_not_tested_and_says_why(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    measured = audit_row(make_row(**ROW | fields), summary=summarize(tmp_path)).measured
    assert measured.verdict == "not tested"
    assert words in measured.reason


@pytest.mark.parametrize("seconds", [(0.150,), (0.05, 0.150, 0.45)], ids=["one repeat", "a wide interval"])
def test_without_an_interval_or_with_a_wide_one_nothing_is_tested(tmp_path: Path, seconds: tuple[float, ...]) -> None:
    measured = audit_row(make_row(**ROW), summary=summarize(tmp_path, *seconds)).measured
    assert measured.verdict == "not tested"
    assert measured.reason.startswith("no interval, or one too wide to tell: ")


def test_impossible_stands_whatever_was_measured_and_the_contradiction_is_said(tmp_path: Path) -> None:
    summary = summarize(tmp_path, 0.0309, 0.0310, 0.0311)  # 16.9 of 8.1 TFLOP/s
    audited = audit_row(make_row(**ROW | {"milliseconds": 31.0}), summary=summary)
    assert (audited.measured.verdict, audited.verdict) == ("reproduced", "impossible")
    assert audited.reasons[-1].startswith("measured cells agree with it nevertheless")


@pytest.mark.parametrize(
    ("measured_as", "num_threads", "verdict"),
    [
        ("Xeon", 2, "reproduced"),
        ("Xeon", None, "reproduced"),
        ("Xeon", 4, "possible"),
        ("Xe", 2, "possible"),  # a part of a word
        (None, 2, "possible"),  # its own name is another
    ],
)
def test_a_stated_cpu_is_found_by_words_of_its_name_and_its_threads(
    tmp_path: Path, measured_as: str | None, num_threads: int | None, verdict: str
) -> None:
    cpu = StatedDevice(
        name="Xeon with 2 vCPUs",
        source="a test",
        tflops={"fp32": 10.0},
        measured_as=measured_as,
        num_threads=num_threads,
    )
    row = make_row(**ROW | {"device": "Xeon with 2 vCPUs"})
    summary = summarize(tmp_path, device="cpu", environment=make_environment())
    assert audit_row(row, cpu, summary=summary).verdict == verdict
