"""Whether the work was done, and on the device asked for."""

import pytest

from bench.measure.roofline import find_gpu_peaks
from bench.measure.roofline import make_roofline as compute_roofline
from bench.models.flops import count_step_cost
from bench.schema import Validity, Verdict
from bench.verdicts import ValidityInputs, judge_validity
from factories import make_cell, make_gpu_use, make_host_figures, make_roofline
from validity_inputs import list_verdicts, make_gpu_inputs, make_inputs


def test_an_output_on_another_device_is_the_gravest_reason() -> None:
    validity = judge_validity(make_gpu_inputs(device_kind="cpu", step_seconds=(0.1,) * 9))
    assert validity.verdict == "wrong-device"
    assert [reason.verdict for reason in validity.reasons] == ["wrong-device", "too-short"]
    assert validity.reasons[0].message == "the step's output lives on the cpu, the cell asks for the gpu"


def test_a_mode_and_threads_that_something_turned_off_are_said_so() -> None:
    assert list_verdicts(make_inputs(cell=make_cell(mode="compiled"), is_compiled=False)) == ["not-as-asked"]
    for fine in (make_cell(mode="compiled"), True), (make_cell(mode="compiled"), None), (make_cell(), False):
        assert list_verdicts(make_inputs(cell=fine[0], is_compiled=fine[1])) == []
    for busy_cores, verdicts in (1.0, ["not-as-asked"]), (1.3, []), (None, []):
        peak = make_host_figures(busy_cores=busy_cores)
        assert list_verdicts(make_inputs(num_threads=2, host_peak=peak)) == verdicts


OVER: list[Verdict] = ["over-peak"]
# A GeForce RTX 4090 whose highest clock is 3105 MHz: 3105 / 2520 is 1.232.
RTX_4090 = make_gpu_use(max_sm_clock_mhz=3105, sm_clock_mhz=(2970, 2970, 2970))


def make_memory_bound(share: float, **cell: str) -> ValidityInputs:
    """Return steps of 0.1 s, in this share of which the memory can move their bytes."""
    return make_gpu_inputs(cell=cell, roofline=make_roofline(share_of_peak=0.1, min_memory_seconds=share * 0.1))


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        (make_gpu_inputs(roofline=make_roofline(share_of_peak=0.99)), []),
        (make_gpu_inputs(roofline=make_roofline(share_of_peak=1.01)), OVER),
        # Tensor cores may pass a figure that is quoted below the highest clock.
        *(
            (make_gpu_inputs(cell={"precision": precision}, roofline=make_roofline(share_of_peak=share)), expected)
            for precision in ("tf32", "fp16", "bf16")
            for share, expected in ((1.14, []), (1.16, OVER))
        ),
        # So may a device whose highest clock is above the stated one; a lower one makes no peak smaller.
        (make_gpu_inputs(gpu_use=(RTX_4090,), roofline=make_roofline(share_of_peak=1.22, peak_clock_mhz=2520.0)), []),
        (make_gpu_inputs(gpu_use=(RTX_4090,), roofline=make_roofline(share_of_peak=1.24, peak_clock_mhz=2520.0)), OVER),
        (make_gpu_inputs(roofline=make_roofline(share_of_peak=0.99, peak_clock_mhz=1700.0)), []),
        # A measured peak may be surpassed by a tenth.
        (make_inputs(roofline=make_roofline(share_of_peak=1.09, share_of_roofline=1.09)), []),
        (make_inputs(roofline=make_roofline(share_of_peak=1.11, share_of_roofline=1.11)), OVER),
        # The memory's bandwidth not at all.
        (make_memory_bound(0.99), []),
        (make_memory_bound(1.01), OVER),
        (make_memory_bound(1.01, precision="bf16"), OVER),
    ],
)
def test_what_passes_the_peak_was_not_done(inputs: ValidityInputs, expected: list[Verdict]) -> None:
    assert list_verdicts(inputs) == expected


@pytest.mark.parametrize(
    ("model", "share", "expected"),
    [
        ("vgg16", 1.3, []),  # 3x3 convolutions of stride 1, which Winograd does with up to 3.9 times fewer operations
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
