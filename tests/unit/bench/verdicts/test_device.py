"""Whether the work was done, and on the device asked for."""

import pytest

from bench.measure.roofline import find_gpu_peaks
from bench.measure.roofline import make_roofline as compute_roofline
from bench.models.flops import count_step_cost
from bench.schema import Validity, Verdict
from bench.verdicts import judge_validity
from factories import make_cell, make_gpu_use, make_roofline
from host_figures import make_host_figures
from validity_inputs import list_verdicts, make_gpu_inputs, make_inputs


def test_an_output_on_another_device_is_the_gravest_reason() -> None:
    validity = judge_validity(make_gpu_inputs(device_kind="cpu", step_seconds=(0.1,) * 9))
    assert validity.verdict == "wrong-device"
    assert [reason.verdict for reason in validity.reasons] == ["wrong-device", "too-short"]
    assert validity.reasons[0].message == "the step's output lives on the cpu, the cell asks for the gpu"


@pytest.mark.parametrize(("share", "expected"), [(0.99, []), (1.01, ["over-peak"])])
def test_more_than_a_datasheets_peak_is_over_peak(share: float, expected: list[Verdict]) -> None:
    assert list_verdicts(make_gpu_inputs(roofline=make_roofline(share_of_peak=share))) == expected


@pytest.mark.parametrize("precision", ["tf32", "fp16", "bf16"])
@pytest.mark.parametrize(("share", "expected"), [(1.14, []), (1.16, ["over-peak"])])
def test_tensor_cores_may_pass_a_figure_that_is_quoted_below_the_highest_clock(
    share: float, expected: list[Verdict], precision: str
) -> None:
    inputs = make_gpu_inputs(cell={"precision": precision}, roofline=make_roofline(share_of_peak=share))
    assert list_verdicts(inputs) == expected


@pytest.mark.parametrize(("share", "expected"), [(1.09, []), (1.11, ["over-peak"])])
def test_a_measured_peak_may_be_surpassed_by_a_tenth(share: float, expected: list[Verdict]) -> None:
    roofline = make_roofline(share_of_peak=share, share_of_roofline=share)
    assert list_verdicts(make_inputs(roofline=roofline)) == expected


@pytest.mark.parametrize(("share", "expected"), [(0.99, []), (1.01, ["over-peak"])])
def test_more_than_the_memorys_bandwidth_is_over_peak(share: float, expected: list[Verdict]) -> None:
    """Check steps of 0.1 s, bound by memory, and by arithmetic as counted."""
    for bound in ("memory", "arithmetic"):
        roofline = make_roofline(bound=bound, share_of_peak=0.1, min_memory_seconds=share * 0.1)
        assert list_verdicts(make_gpu_inputs(roofline=roofline)) == expected
        assert list_verdicts(make_gpu_inputs(cell={"precision": "bf16"}, roofline=roofline)) == expected


@pytest.mark.parametrize(("share", "expected"), [(1.22, []), (1.24, ["over-peak"])])
def test_a_device_may_pass_a_figure_that_is_stated_below_its_highest_clock(
    share: float, expected: list[Verdict]
) -> None:
    # A GeForce RTX 4090 whose highest clock is 3105 MHz: 3105 / 2520 is 1.232.
    roofline = make_roofline(share_of_peak=share, peak_clock_mhz=2520.0)
    gpu = make_gpu_use(max_sm_clock_mhz=3105, sm_clock_mhz=(2970, 2970, 2970))
    assert list_verdicts(make_gpu_inputs(gpu_use=(gpu,), roofline=roofline)) == expected


def test_a_highest_clock_below_the_stated_one_makes_no_peak_smaller() -> None:
    roofline = make_roofline(share_of_peak=0.99, peak_clock_mhz=1700.0)
    assert list_verdicts(make_gpu_inputs(roofline=roofline)) == []


@pytest.mark.parametrize(
    ("model", "share", "expected"),
    [
        ("vgg16", 1.3, []),  # 3x3 convolutions of stride 1, which Winograd does with up to 3.9 times fewer operations
        ("vgg16", 4.0, ["over-peak"]),
        ("resnet18", 1.3, []),
        ("resnet18", 2.8, ["over-peak"]),  # its stem, shortcuts and convolutions of stride 2 have no such algorithm
        ("vit-b-16", 1.01, ["over-peak"]),
    ],
)
def test_an_honest_winograd_convolution_on_a_t4_is_not_over_peak(
    model: str, share: float, expected: list[Verdict]
) -> None:
    cell = make_cell(model=model, device="gpu", phase="infer", input_size=224, num_classes=1000, batch_size=64)
    peaks = find_gpu_peaks(["Tesla T4"], "fp32")
    assert peaks.flops_per_second is not None
    seconds = count_step_cost(cell).flops / (share * peaks.flops_per_second)
    inputs = make_inputs(
        (seconds,) * 50,
        cell=cell,
        device_kind="gpu",
        gpu_use=(make_gpu_use(),),
        roofline=compute_roofline(cell, seconds, peaks),
    )
    assert list_verdicts(inputs) == expected


def test_both_shares_are_told() -> None:
    roofline = make_roofline(share_of_peak=4.2, flops_per_step=4 * 10**9, least_flops_per_step=10**9)
    (reason,) = judge_validity(make_gpu_inputs(roofline=roofline)).reasons
    assert reason.message.startswith(
        "105% of the device's peak by the fewest operations that known algorithms need (420% as counted), more than"
    )


def test_a_rate_without_a_peak_and_an_output_without_a_place_are_unchecked() -> None:
    inputs = make_gpu_inputs(device_kind=None, roofline=make_roofline(peak_flops_per_second=None, share_of_peak=None))
    expected = ("device of the output not known", "peak of the device not known")
    assert judge_validity(inputs) == Validity(verdict="valid", reasons=(), unchecked=expected)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (1e11, 1.09e11, ()),
        (
            1e11,
            1.2e11,
            (
                "the host's matrix product ran at 100 GFLOP/s before the window and at 120 after it (+20%): the host's "
                "speed changed",
            ),
        ),
        (
            1e11,
            8e10,
            (
                "the host's matrix product ran at 100 GFLOP/s before the window and at 80 after it (-20%): the host's "
                "speed changed",
            ),
        ),
        (None, 1e11, ()),
    ],
)
def test_a_host_whose_speed_changed_during_a_measurement_is_noted(
    before: float | None, after: float, expected: tuple[str, ...]
) -> None:
    validity = judge_validity(make_inputs(host_peak=make_host_figures(before=before, after=after)))
    assert (validity.verdict, validity.notes) == ("valid", expected)
