"""The rates that the study's times imply, and whether the stated devices reach them."""

import pytest

from bench.registry import Device, Phase
from bench.schema import Framework
from collector.claims.stated_times import (
    ReadTime,
    choose_kindest_time,
    compute_latency_gains,
    describe_bound,
    list_beyond_limit,
    read_time,
)
from collector.claims.study import load_study


def read(
    model: str,
    framework: Framework,
    device: Device,
    phase: Phase,
    counted: dict[tuple[str, int, Phase], float] | None = None,
) -> tuple[ReadTime, ...]:
    study = load_study()
    return read_time(study, study.find_entry(model, framework, device, phase), counted or {})


@pytest.mark.parametrize(
    ("model", "device", "phase", "flops_per_second"),
    [
        # 2 FLOP a multiply-add, batch 64, three forward passes in training; GMAC and times of the study's table.
        ("vgg16", "gpu", "train", 3 * 2 * 15.47e9 * 64 / 0.60354),
        ("vgg16", "gpu", "infer", 2 * 15.47e9 * 64 / 0.06624),
        ("vgg16", "cpu", "infer", 2 * 15.47e9 * 64 / 2.78917),
        ("resnet18", "gpu", "train", 3 * 2 * 1.814e9 * 64 / 0.19842),
        ("resnet18", "cpu", "train", 3 * 2 * 1.814e9 * 64 / 10.12783),
    ],
)
def test_a_time_implies_a_rate(model: str, device: Device, phase: Phase, flops_per_second: float) -> None:
    (time,) = read(model, "tensorflow", device, phase)
    assert time.rate.flops_per_second == pytest.approx(flops_per_second, rel=1e-9)


@pytest.mark.parametrize(
    ("model", "device", "phase", "percent"),
    [
        ("vgg16", "gpu", "train", 121.5),  # 9.84 of 8.1 TFLOP/s
        ("resnet18", "gpu", "train", 43.3),  # 3.51 TFLOP/s
        ("vgg16", "cpu", "infer", 357.8),  # 710 of 64 * 3.1 = 198.4 GFLOP/s
    ],
)
def test_a_rate_is_a_share_of_what_bounds_the_stated_device(
    model: str, device: Device, phase: Phase, percent: float
) -> None:
    (time,) = read(model, "tensorflow", device, phase)
    assert 100 * time.rate.share_of_limit == pytest.approx(percent, abs=0.1)


def test_conv6_is_read_at_two_sizes_and_by_its_parameters() -> None:
    large, small, unknown = read("conv6", "tensorflow", "gpu", "train")
    assert large.rate.flops_per_second / 1e12 == pytest.approx(20.3, abs=0.05)  # 3 * 2 * 7.54e9 * 64 / 0.14267
    assert small.rate.flops_per_second / 1e12 == pytest.approx(0.414, abs=0.0005)  # 3 * 2 * 0.1539e9 * 64 / 0.14267
    assert [time.rate.plausibility for time in (large, small, unknown)] == ["implausible", "possible", "possible"]
    # 3 * 2 * 397,000 * 224 * 224 * 64 / 0.14267
    assert unknown.rate.most_flops_per_second / 1e12 == pytest.approx(53.6, abs=0.05)


def test_cyclegans_times_are_all_possible_with_the_generators_of_tensorflows_tutorial() -> None:
    study = load_study()
    entries = [entry for entry in study.table if entry.model == "cyclegan"]
    resnets, unets = zip(*(read_time(study, entry, {}) for entry in entries), strict=True)
    assert len(entries) == 7
    assert "possible" not in {time.rate.plausibility for time in resnets if time.entry.device == "cpu"}
    assert {time.rate.plausibility for time in unets} == {"possible"}
    # 12.1 GFLOP in 203.57 ms, 0.318 TFLOP in 5047.28 and 5625.63 ms
    rates = [time.rate.flops_per_second / 1e9 for time in unets if time.entry.device == "cpu"]
    assert rates == pytest.approx([63.1, 59.4, 56.6], abs=0.05)


def test_no_time_is_impossible_and_only_vgg16s_are_implausible_under_every_reading() -> None:
    found = {
        (time.entry.model, time.entry.framework, time.entry.device, time.entry.phase): time.rate.algorithm
        for time in list_beyond_limit(load_study(), {})
    }
    assert found == {
        ("vgg16", "tensorflow", "gpu", "train"): "F(2x2, 3x3)",  # 9.84 of 8.1 TFLOP/s: 1.22
        ("vgg16", "pytorch", "gpu", "train"): "F(2x2, 3x3)",  # 9.01: 1.11
        # 29.9: 3.69; the 3x3 convolutions are 0.992 of it, so F(4x4, 3x3) needs 3.69 x (0.008 + 0.248) = 0.945
        ("vgg16", "tensorflow", "gpu", "infer"): "F(4x4, 3x3)",
        ("vgg16", "pytorch", "gpu", "infer"): "F(4x4, 3x3)",  # 28.0: 3.45
        ("vgg16", "tensorflow", "cpu", "infer"): "F(4x4, 3x3)",  # 710 of 198.4 GFLOP/s: 3.58
    }
    assert len(load_study().table) == 28


def test_the_cpus_likely_peak_is_not_its_bound() -> None:
    sentence = describe_bound(load_study().cpu)
    assert load_study().cpu.bound_flops_per_second == pytest.approx(2 * 16 * 2 * 3.1e9)
    assert sentence.startswith("the FP32 198 GFLOP/s bound of a Xeon with 2 vCPUs is taken from")
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
            cpu, gpu = (study.find_entry(claim.model, "tensorflow", device, claim.phase) for device in ("cpu", "gpu"))
            assert round(cpu.milliseconds / gpu.milliseconds) == claim.figure
        if claim.kind == "phases":
            train, infer = (study.find_entry("vgg16", "tensorflow", "cpu", phase) for phase in ("train", "infer"))
            assert round(train.milliseconds / infer.milliseconds) == claim.figure


def test_operations_that_a_run_counted_replace_those_of_the_cells_reading_alone() -> None:
    (time,) = read("vgg16", "tensorflow", "gpu", "train", {("vgg16", 224, "train"): 1e9})
    assert time.rate.flops_per_second == pytest.approx(64e9 / 0.60354)
    assert time.rate.work.is_counted
    resnet, unet = read("cyclegan", "tensorflow", "gpu", "train", {("cyclegan", 256, "train"): 1e12})
    assert (resnet.rate.work.flops, resnet.rate.work.is_counted) == (1e12, True)
    assert (unet.rate.work.flops, unet.rate.work.is_counted) == (318.43e9, False)


def test_the_times_of_one_reading_stand_beside_each_other() -> None:
    times = read("conv6", "tensorflow", "gpu", "train")
    assert choose_kindest_time(times).rate.work.label == "224 px with 397K parameters"
    assert times[1].describe().startswith("TensorFlow train on the GPU: 143 ms at 32 px imply 0.414 TFLOP/s")
