"""wrong-device and over-peak: a measurement just within each bound and one just beyond."""

import pytest

from bench.schema import Verdict
from bench.validity import judge_validity
from factories import make_gpu_use, make_roofline
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
    roofline = make_roofline(bound="memory", share_of_peak=0.1, share_of_roofline=share)
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
