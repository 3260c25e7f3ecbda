"""The claims about the order of models, and about training over inference."""

from pathlib import Path

import pytest

from bench.schema import Environment, Result
from factories import make_cell, make_roofline
from measured_runs import make_repeats
from study_runs import IMPLAUSIBLE, T4, VGG16, VGG16_FLOPS, WORK, XEON, evaluate, evaluate_unmeasured, make_devices

CLAIMED = {"conv6": 200.0, "vgg16": 100.0, "resnet18": 50.0, "cyclegan": 10.0}


def make_speedups(speedups: dict[str, float], gpu: Environment = T4) -> list[Result]:
    return [
        result for model, speedup in speedups.items() for result in make_devices(speedup, 1.0, gpu, XEON, **WORK[model])
    ]


@pytest.mark.parametrize(
    ("changed", "verdict", "words"),
    [
        ({}, "reproduced", "conv6 gains more than vgg16, conv6 gains more than resnet18"),
        ({"vgg16": 60.0, "resnet18": 90.0}, "reproduced", "vgg16 gains more than cyclegan"),  # of one class
        ({"vgg16": 300.0}, "not reproduced", "conv6 gains less than vgg16"),
        ({"cyclegan": 70.0}, "not reproduced", "resnet18 gains less than cyclegan"),
    ],
)
def test_lighter_classes_must_gain_more_than_the_next(
    tmp_path: Path, changed: dict[str, float], verdict: str, words: str
) -> None:
    result = evaluate(tmp_path, *make_speedups(CLAIMED | changed))["lightness"]
    assert result.verdict == verdict
    assert words in result.reason


def test_an_order_needs_every_model_on_the_stated_hardware(tmp_path: Path) -> None:
    three = {model: speedup for model, speedup in CLAIMED.items() if model != "vgg16"}
    result = evaluate(tmp_path, *make_speedups(three))["lightness"]
    assert (result.verdict, result.reason.rpartition(": ")[2]) == ("not tested here", "vgg16")


def test_the_studys_own_table_has_a_heavier_model_gain_more(tmp_path: Path) -> None:
    (finding,) = evaluate_unmeasured(tmp_path)["lightness"].findings
    assert finding.name == "its own table disagrees"
    # 69,875.21 / 603.54 and 10,127.83 / 198.42; 2 x 15.47 and 2 x 1.814 GMAC
    assert "vgg16 computes more than resnet18 under every reading, 30.9 against 3.63 GFLOP" in finding.reason
    assert finding.reason.endswith("116x against 51.0x")


def make_phases(seconds: float, host: Environment = XEON) -> list[Result]:
    """Return a training step of VGG16 of so many seconds and inference of 1 s, on a CPU."""
    roofline, forward = (make_roofline(flops_per_step=flops) for flops in (VGG16_FLOPS, VGG16_FLOPS // 3))
    cells = {
        phase: make_cell(**VGG16, framework="tensorflow", mode="graph", phase=phase) for phase in ("train", "infer")
    }
    return [
        *make_repeats(cells["train"], *[seconds] * 3, environment=host, roofline=roofline),
        *make_repeats(cells["infer"], *[1.0] * 3, environment=host, roofline=forward),
    ]


def test_vgg16s_25_to_1_on_the_cpu_rests_on_an_implausible_time(tmp_path: Path) -> None:
    result = evaluate_unmeasured(tmp_path)["phases"]
    assert result.verdict == IMPLAUSIBLE
    assert result.reason.startswith("TensorFlow infer on the CPU: 2,790 ms at 224 px imply 710 GFLOP/s, 358 %")
    # 69,875.21 / 2,789.17; three forward passes to one
    assert "vgg16, TensorFlow on the CPU: 25.1 to 1 in time, 3.00 to 1 in operations" in result.arithmetic
    # 452.89 / 4.63; 1885 / 99.1 and 318.43 / 12.0964
    assert "cyclegan, TensorFlow on the GPU: 97.8 to 1 in time, 19.0 or 26.3 to 1 in operations" in result.arithmetic


@pytest.mark.parametrize(("seconds", "verdict"), [(25.0, "reproduced"), (3.0, "not reproduced")])
def test_training_over_inference_is_measured_on_the_stated_cpu(tmp_path: Path, seconds: float, verdict: str) -> None:
    result = evaluate(tmp_path, *make_phases(seconds))["phases"]
    assert result.verdict == verdict
    assert "the band 22.5 to 27.5" in result.reason
    (line,) = result.measured
    assert line.startswith("vgg16 train over infer, CPU, batch 64, 224 px, TensorFlow graph, ")
