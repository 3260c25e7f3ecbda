"""The claims about TensorFlow's latency and fusion."""

from pathlib import Path
from typing import Any

import pytest

from factories import make_cell
from measured_runs import make_repeats
from study_runs import H100, evaluate, make_latencies, make_modes


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [((0.85, 0.88), "reproduced"), ((2.0, 0.82), "not reproduced"), ((1.0,), "not reproduced")],
)
def test_about_15_percent_must_hold_at_every_batch(tmp_path: Path, ratios: tuple[float, ...], verdict: str) -> None:
    result = evaluate(tmp_path, *make_latencies(*ratios))["latency"]
    assert result.verdict == verdict
    assert result.reason.endswith("In the study's own table the average is 10.3 %")
    assert len(result.measured) == len(ratios)


def test_a_latency_whose_interval_is_too_wide_decides_nothing(tmp_path: Path) -> None:
    eager = make_cell(device="gpu", phase="infer")
    graph = make_cell(device="gpu", phase="infer", framework="tensorflow", mode="graph")
    results = [
        *make_repeats(eager, 1.0, 1.0, environment=H100),
        *make_repeats(graph, 0.7, 0.85, 1.0, environment=H100),
    ]
    result = evaluate(tmp_path, *results)["latency"]
    assert result.verdict == "not decided"
    assert "of 1 are too wide to decide (conv6 batch 64: 0." in result.reason


@pytest.mark.parametrize("fields", [{"input_size": 64}, {"data_dir": "/data/cifar"}])
def test_latency_and_fusion_are_evaluated_at_the_stated_sizes_on_synthetic_data(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    claim_results = evaluate(tmp_path, *make_modes(1.0, 0.5, 1.0, **fields))
    assert (claim_results["latency"].verdict, claim_results["latency"].measured) == ("not tested here", ())
    assert (claim_results["fusion"].verdict, claim_results["fusion"].measured) == ("not tested here", ())


@pytest.mark.parametrize(
    ("eager", "graph", "pytorch", "verdict"),
    [
        (1.0, 0.5, 0.8, "reproduced"),
        (1.0, 0.5, 0.4, "not reproduced"),  # graph mode is faster, and PyTorch is faster still
        (0.4, 0.5, 0.8, "not reproduced"),  # faster than PyTorch, not because of graph mode
        (0.5, 0.5, 0.8, "not decided"),
    ],
)
def test_fusion_must_lower_latency_and_below_that_of_pytorch(
    tmp_path: Path, eager: float, graph: float, pytorch: float, verdict: str
) -> None:
    result = evaluate(tmp_path, *make_modes(eager, graph, pytorch, compiled=2.0))["fusion"]
    assert result.verdict == verdict
    assert "does not by itself make fusion the reason that TensorFlow is faster than PyTorch" in result.reason
    assert "XLA over graph mode, beside it: faster in 0 of 1 cells, slower in 1" in result.reason


def test_cells_that_fusion_lacks_are_named(tmp_path: Path) -> None:
    result = evaluate(tmp_path, *make_modes(None, 0.5, 0.8), *make_modes(None, None, 0.8, batch_size=8))["fusion"]
    assert result.verdict == "not tested here"
    assert "TensorFlow graph at conv6 32 px batch 8, cyclegan 256 px batch 1, resnet18 224 px batch 64" in result.reason
    assert "TensorFlow eager at conv6 32 px batch 8 and 64, cyclegan 256 px batch 1" in result.reason
    assert "PyTorch eager at cyclegan 256 px batch 1, resnet18 224 px batch 64, vgg16 224 px batch 64" in result.reason
