"""The rates that the study's times imply, and whether the stated devices reach them."""

import pandas as pd
import pytest

from bench.registry import Device, Phase
from bench.schema import Framework
from collector.claims.measurements import count_flops
from collector.claims.plausibility import (
    Rate,
    compute_latency_gains,
    describe_algorithm_caveat,
    describe_bound,
    imply_rates,
    list_beyond_bound,
)
from collector.claims.study import load_study


def find_rates(
    model: str,
    framework: Framework,
    device: Device,
    phase: Phase,
    counted: dict[tuple[str, int, Phase], float] | None = None,
) -> tuple[Rate, ...]:
    study = load_study()
    return imply_rates(study, study.find_entry(model, framework, device, phase), counted or {})


@pytest.mark.parametrize(
    ("model", "device", "phase", "flops_per_second"),
    [
        # 2 FLOP a multiply-add, batch 64, three forward passes in training; GMAC and times of the study's table.
        ("vgg16", "gpu", "train", 3 * 2 * 15.47e9 * 64 / 0.60354),
        ("vgg16", "gpu", "infer", 2 * 15.47e9 * 64 / 0.06624),
        ("vgg16", "cpu", "infer", 2 * 15.47e9 * 64 / 2.78917),
        ("resnet18", "gpu", "train", 3 * 2 * 1.814e9 * 64 / 0.19842),
        ("resnet18", "cpu", "train", 3 * 2 * 1.814e9 * 64 / 10.12783),
        ("cyclegan", "cpu", "train", 1.885e12 / 5.04728),
        ("cyclegan", "gpu", "infer", 2 * 49.55e9 / 0.00463),
    ],
)
def test_a_time_implies_a_rate(model: str, device: Device, phase: Phase, flops_per_second: float) -> None:
    (rate,) = find_rates(model, "tensorflow", device, phase)
    assert rate.flops_per_second == pytest.approx(flops_per_second, rel=1e-9)


@pytest.mark.parametrize(
    ("model", "device", "phase", "percent"),
    [
        ("vgg16", "gpu", "train", 121.5),  # 9.84 of 8.1 TFLOP/s
        ("resnet18", "gpu", "train", 43.3),  # 3.51 TFLOP/s
        ("cyclegan", "cpu", "train", 188.2),  # 373 of 64 * 3.1 = 198.4 GFLOP/s
        ("vgg16", "cpu", "infer", 357.8),  # 710 GFLOP/s
    ],
)
def test_a_rate_is_a_share_of_what_bounds_the_stated_device(
    model: str, device: Device, phase: Phase, percent: float
) -> None:
    (rate,) = find_rates(model, "tensorflow", device, phase)
    assert 100 * rate.share_of_bound == pytest.approx(percent, abs=0.1)


def test_conv6_is_read_at_both_sizes_and_possible_at_one() -> None:
    large, small = find_rates("conv6", "tensorflow", "gpu", "train")
    assert (large.input_size, small.input_size) == (224, 32)
    assert large.flops_per_second / 1e12 == pytest.approx(20.3, abs=0.05)  # 3 * 2 * 7.54e9 * 64 / 0.14267
    assert small.flops_per_second / 1e12 == pytest.approx(0.414, abs=0.0005)  # 3 * 2 * 0.1539e9 * 64 / 0.14267
    assert (large.plausibility, small.plausibility) == ("impossible", "possible")  # 2.49 and 0.05 times 8.1


def test_of_the_28_times_six_are_impossible_and_four_implausible() -> None:
    found = {
        (rate.entry.model, rate.entry.framework, rate.entry.device, rate.entry.phase): rate.plausibility
        for rate in list_beyond_bound(load_study(), {})
    }
    assert found == {
        ("vgg16", "tensorflow", "gpu", "train"): "implausible",  # 9.84 of 8.1 TFLOP/s: 1.22
        ("vgg16", "pytorch", "gpu", "train"): "implausible",  # 9.01: 1.11
        ("vgg16", "tensorflow", "gpu", "infer"): "impossible",  # 29.9: 3.69
        ("vgg16", "pytorch", "gpu", "infer"): "impossible",  # 28.0: 3.45
        ("vgg16", "tensorflow", "cpu", "infer"): "impossible",  # 710 of 198.4 GFLOP/s: 3.58
        ("cyclegan", "tensorflow", "cpu", "train"): "implausible",  # 373: 1.88
        ("cyclegan", "pytorch", "cpu", "train"): "implausible",  # 335: 1.69
        ("cyclegan", "tensorflow", "gpu", "infer"): "impossible",  # 21.4 of 8.1 TFLOP/s: 2.64
        ("cyclegan", "pytorch", "gpu", "infer"): "impossible",  # 20.1: 2.48
        ("cyclegan", "tensorflow", "cpu", "infer"): "impossible",  # 487 of 198.4 GFLOP/s: 2.45
    }
    assert len(load_study().table) == 28


def test_the_cpus_likely_peak_is_not_its_bound() -> None:
    sentence = describe_bound(load_study().cpu)
    assert load_study().cpu.bound_flops_per_second == pytest.approx(2 * 16 * 2 * 3.1e9)
    assert "is taken as 198 GFLOP/s" in sentence
    assert sentence.endswith("its likely peak is 70.0 to 128 GFLOP/s")


def test_the_15_percent_is_not_in_the_studys_table() -> None:
    gains = compute_latency_gains(load_study())
    expected = {"conv6": 0.186, "vgg16": 0.064, "resnet18": 0.098, "cyclegan": 0.061}
    assert {model: round(gain, 3) for model, gain in gains.items()} == expected
    assert sum(gains.values()) / 4 == pytest.approx(0.1025, abs=5e-5)


def test_the_tables_times_give_the_claimed_speedups() -> None:
    study = load_study()
    for claim in study.claims:
        if claim.kind == "speedup":
            assert claim.model is not None
            cpu, gpu = (study.find_entry(claim.model, "tensorflow", device, "train") for device in ("cpu", "gpu"))
            assert round(cpu.milliseconds / gpu.milliseconds) == claim.figure


def test_operations_that_a_run_counted_replace_the_studys() -> None:
    (rate,) = find_rates("vgg16", "tensorflow", "gpu", "train", {("vgg16", 224, "train"): 1e9})
    assert rate.flops_per_second == pytest.approx(64e9 / 0.60354)
    assert rate.is_counted


def test_of_several_counts_of_one_work_the_fewest_operations_count() -> None:
    rows = pd.DataFrame(
        {
            "model": "vgg16",
            "input_size": 224,
            "phase": "train",
            "batch_size": [64, 64, 1],
            "flops_per_step": pd.array([640, 320, None], dtype="Int64"),
        }
    )
    assert count_flops(rows) == {("vgg16", 224, "train"): 5.0}


def test_the_caveat_names_the_algorithm_and_what_is_left_to_it() -> None:
    (training,) = find_rates("vgg16", "tensorflow", "gpu", "train")
    (inference,) = find_rates("vgg16", "tensorflow", "gpu", "infer")
    (small,) = find_rates("resnet18", "tensorflow", "gpu", "train")
    assert describe_algorithm_caveat(training).startswith(
        "out of reach of direct convolutions, possible only by algorithms with"
    )
    assert describe_algorithm_caveat(inference).startswith(
        "out of reach even if all of the work were 3x3 convolutions done with"
    )
    assert "all of the work at 92.3 % of the peak" in describe_algorithm_caveat(inference)  # 29.89 / 8.1 / 4
    assert describe_algorithm_caveat(small) == ""
