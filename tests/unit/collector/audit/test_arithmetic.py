"""The verdict by arithmetic: what a figure implies, over what its device can do."""

import pytest

from audit_tables import GIGA, audit_row, make_row
from collector.audit.table import StatedDevice, StatedReading


def test_the_calculation_stands_in_one_line() -> None:
    audited = audit_row(
        make_row(device="T4", model="resnet50", flops_per_sample=None, batch_size=64, seconds=None, milliseconds=152.73)
    )
    assert audited.lines == [
        "64 images x 8.18 GFLOP / 152.73 ms = 3.43 TFLOP/s, 42.3 % of the 8.10 TFLOP/s of the Tesla T4 at fp32"
    ]


@pytest.mark.parametrize(
    ("times_the_peak", "verdict"),
    [
        (0.999, "possible"),
        (1.0, "possible"),
        (1.001, "implausible"),
        (2.3, "implausible"),  # beyond F(2x2, 3x3), which saves 2.25
        (3.99, "implausible"),
        (4.01, "impossible"),  # beyond F(4x4, 3x3), which saves 4
    ],
)
def test_a_row_is_judged_by_how_many_times_the_peak_it_implies(times_the_peak: float, verdict: str) -> None:
    audited = audit_row(make_row(samples_per_second=100 * times_the_peak))
    assert audited.arithmetic.verdict == verdict
    assert audited.share_of_bound == pytest.approx(times_the_peak)
    assert bool(audited.arithmetic.reason) == (verdict != "possible")


def test_work_without_3x3_convolutions_is_not_saved_by_winograd() -> None:
    reading = StatedReading(flops_per_sample=10 * GIGA, winograd_share=0.0)
    assert audit_row(make_row(readings=(reading,), samples_per_second=101)).arithmetic.verdict == "impossible"


@pytest.mark.parametrize(
    ("model", "times_the_peak", "verdict"),
    [
        ("matmul", 1.01, "impossible"),
        ("vit-b-16", 1.01, "impossible"),
        ("vgg16", 3.8, "implausible"),  # all but 0.8 % of its work is in 3x3 convolutions: 3.91 times fewer
        ("vgg16", 4.0, "impossible"),
        ("resnet50", 1.3, "implausible"),  # 13 of 16 blocks have one of stride 1, 0.1156 of 4.089 GMAC each
        ("resnet50", 1.6, "impossible"),
    ],
)
def test_a_counted_model_is_saved_only_in_its_3x3_convolutions(model: str, times_the_peak: float, verdict: str) -> None:
    slow = audit_row(make_row(model=model, flops_per_sample=None, samples_per_second=1))
    assert slow.share_of_bound is not None
    rate = times_the_peak / slow.share_of_bound
    fast = audit_row(make_row(model=model, flops_per_sample=None, samples_per_second=rate)).arithmetic
    assert fast.verdict == verdict


def test_each_reading_has_its_line_and_the_kindest_one_decides() -> None:
    readings = (
        StatedReading(label="large", flops_per_sample=1000 * GIGA),
        StatedReading(label="small", flops_per_sample=GIGA),
    )
    audited = audit_row(make_row(readings=readings))
    assert [line.partition(":")[0] for line in audited.lines] == ["large", "small"]
    assert audited.verdict == "possible"
    assert audited.kindest.flops_per_second == pytest.approx(10 * GIGA)
    assert audited.most_flops_per_second == pytest.approx(10_000 * GIGA)


def test_a_figure_between_rated_peak_and_bound_is_possible_and_says_so() -> None:
    cpu = StatedDevice(
        name="CPU", source="made up", cores=10, flops_per_cycle=50, gigahertz=2.0, bound_gigahertz=3.0
    )  # 1.0 to 1.5 TFLOP/s
    audited = audit_row(make_row(device="CPU", samples_per_second=120), cpu)
    assert audited.verdict == "possible"
    assert audited.lines[0].endswith(
        "120 % of the 1.00 TFLOP/s of the CPU at fp32, 80.0 % of its bound of 1.50 TFLOP/s"
    )
    assert audited.arithmetic.reason == "beyond the rated peak, within the bound: it needs a clock above the rated one"


def test_amp_is_held_against_the_peak_of_fp16_and_int8_against_its_own() -> None:
    amp, fp16, int8 = (
        audit_row(make_row(device="T4", precision=precision, samples_per_second=1300))
        for precision in ("amp", "fp16", "int8")
    )
    assert amp.share_of_bound == fp16.share_of_bound == pytest.approx(13 / 65)
    assert int8.share_of_bound == pytest.approx(13 / 130)
    assert "1,300 samples/s x 10.0 GOP = 13.0 TOP/s" in int8.lines[0]


@pytest.mark.parametrize(
    ("device", "precision", "rate", "words"),
    [
        ("T4", "bf16", 1e9, "no bf16 peak of the Tesla T4 is known ("),
        ("A100-SXM4-40GB", "fp32", 10_000, "in TF32, which frameworks use"),  # 100 of 19.5 TFLOP/s; TF32: 156
        ("RTX 4090", "fp16", 30_000, "with accumulation in float16"),  # 300 of 1.2 x 165.2 TFLOP/s
    ],
)
def test_what_else_is_known_of_a_card_is_named(device: str, precision: str, rate: float, words: str) -> None:
    assert words in audit_row(make_row(device=device, precision=precision, samples_per_second=rate)).arithmetic.reason


def test_weights_cannot_be_read_faster_than_the_memory_gives_them() -> None:
    # 138.36 million weights of 2 bytes less twice 4 MiB of cache, at 320 GB/s: 0.8385 ms. Arithmetic needs 0.476 ms.
    fields = {"device": "T4", "model": "vgg16", "flops_per_sample": None, "precision": "fp16", "batch_size": 1}
    slow, fast = (audit_row(make_row(**fields, seconds=None, milliseconds=value)).arithmetic for value in (0.84, 0.83))
    assert (slow.verdict, fast.verdict) == ("possible", "impossible")
    assert fast.reason == "reading the weights once, 277 MB less what the cache keeps, takes 0.839 ms at 320 GB/s"
    training = audit_row(make_row(**fields | {"phase": "train"}, seconds=None, milliseconds=1.5)).arithmetic
    assert training.verdict == "possible"  # how often a step crosses the memory depends on the optimiser


def test_a_range_of_work_is_possible_by_its_fewest() -> None:
    reading = StatedReading(flops_per_sample=GIGA, most_flops_per_sample=400 * GIGA)
    audited = audit_row(make_row(readings=(reading,)))
    assert audited.verdict == "possible"
    assert "x 1.00 to 400 GFLOP / 1 s = 0.0100 to 4.00 TFLOP/s, 1.00 to 400 % of the" in audited.lines[0]
