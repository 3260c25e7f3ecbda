"""The verdict: for each of its bounds a measurement just within it and one just beyond."""

from typing import Any

import pytest

from bench.schema import ForeignProcess, GpuUse, Samples, Validity, Verdict
from bench.validity import ValidityInputs, find_drift_bound, judge_validity, measure_drift, measure_spread
from factories import make_cell, make_cpu_use, make_gpu_use, make_phases, make_roofline

STEPS = (0.1,) * 10


def make_inputs(
    step_seconds: tuple[float, ...] = STEPS, *, reached_steady: bool = True, **fields: Any
) -> ValidityInputs:
    """A measurement in a window of 1 s on two cores with nothing to be said against it."""
    samples = Samples(
        warmup_step_seconds=(0.1,), step_seconds=step_seconds, device_step_seconds=None, reached_steady=reached_steady
    )
    given: dict[str, Any] = {
        "cell": make_cell(),
        "phases": make_phases(step_seconds, (0.1,)),
        "samples": samples,
        "device_kind": "cpu",
        "num_threads": 2,
        "cpu_use": make_cpu_use(1.0),
        "gpu_use": (),
        "roofline": make_roofline(),
    }
    return ValidityInputs(**(given | fields))


def make_gpu_inputs(cell: dict[str, Any] | None = None, **fields: Any) -> ValidityInputs:
    """The same on a T4."""
    gpu_cell = make_cell(device="gpu", **(cell or {}))
    given: dict[str, Any] = {"cell": gpu_cell, "device_kind": "gpu", "gpu_use": (make_gpu_use(),)}
    return make_inputs(**(given | fields))


def list_verdicts(inputs: ValidityInputs) -> list[Verdict]:
    return [reason.verdict for reason in judge_validity(inputs).reasons]


# Nothing to be said


def test_a_healthy_measurement_is_valid() -> None:
    assert judge_validity(make_inputs()) == Validity(verdict="valid", reasons=())
    assert judge_validity(make_gpu_inputs()) == Validity(verdict="valid", reasons=())


def test_what_could_not_be_read_is_held_against_nobody() -> None:
    use = make_cpu_use(1.0, other_cores=None, num_periods=None, num_throttled_periods=None, throttled_seconds=None)
    blind = make_gpu_use(
        memory_used_before_bytes=None,
        max_sm_clock_mhz=None,
        sample_seconds=(),
        sm_clock_mhz=(),
        temperature_celsius=(),
        power_watts=(),
        throttle_reasons={},
    )
    assert list_verdicts(make_gpu_inputs(cpu_use=use, gpu_use=(blind,), roofline=None, device_kind=None)) == []


@pytest.mark.parametrize(
    "gpus",
    [
        (),  # NVML could not be asked
        (make_gpu_use(sample_seconds=(), sm_clock_mhz=(), temperature_celsius=(), power_watts=()),),  # no sampling pass
        (make_gpu_use(), make_gpu_use(max_sm_clock_mhz=None)),  # one of two does not report it
    ],
)
def test_a_valid_measurement_says_that_nobody_saw_the_clocks(gpus: tuple[GpuUse, ...]) -> None:
    expected = Validity(verdict="valid", reasons=(), unchecked=("clocks of the GPU not observed",))
    assert judge_validity(make_gpu_inputs(gpu_use=gpus)) == expected


# wrong-device and over-peak


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


# contaminated


def test_a_foreign_process_on_a_gpu_contaminates() -> None:
    foreign = make_gpu_use(foreign_processes=(ForeignProcess(pid=17, memory_bytes=None),))
    validity = judge_validity(make_gpu_inputs(gpu_use=(make_gpu_use(), foreign)))
    assert validity.verdict == "contaminated"
    assert validity.reasons[0].message.endswith("was computing for others before the start (process 17)")


@pytest.mark.parametrize(("mebibytes", "expected"), [(100, []), (101, ["contaminated"])])
def test_memory_in_use_before_the_start_contaminates(mebibytes: int, expected: list[Verdict]) -> None:
    gpu = make_gpu_use(memory_used_before_bytes=mebibytes * 2**20)
    assert list_verdicts(make_gpu_inputs(gpu_use=(gpu,))) == expected


@pytest.mark.parametrize(
    ("num_threads", "num_cores", "other_cores", "expected"),
    [
        (2, 2, 0.19, []),
        (2, 2, 0.21, ["contaminated"]),
        (2, 16, 14.1, []),  # a pod's share of a large node: the others have their own cores
        (2, 16, 14.3, ["contaminated"]),
        (16, 16, 1.5, []),
        (16, 16, 1.7, ["contaminated"]),
    ],
)
def test_others_on_the_cores_that_a_cpu_cell_needs_contaminate(
    num_threads: int, num_cores: int, other_cores: float, expected: list[Verdict]
) -> None:
    use = make_cpu_use(1.0, num_machine_cores=num_cores, other_cores=other_cores)
    assert list_verdicts(make_inputs(cpu_use=use, num_threads=num_threads)) == expected


@pytest.mark.parametrize(
    ("num_cores", "own_cores", "other_cores", "expected"),
    [
        (16, 1.1, 0.2, []),  # a server with nobody else on it
        (16, 1.1, 13.9, []),  # a neighbour on all cores but two
        (16, 1.1, 14.8, ["contaminated"]),  # a neighbour on all cores
        (16, 15.8, 0.2, []),  # a cell whose data pipeline fills the cores, on a quiet server
        (16, 14.2, 1.8, ["contaminated"]),  # the same, and a build beside it
        (4, 1.0, 2.7, []),  # a workstation where three programs work
        (4, 1.0, 2.9, ["contaminated"]),
        (2, 1.0, 0.1, []),  # a small cloud machine, whose launching thread spins on one of two cores
        (2, 1.0, 0.95, ["contaminated"]),
    ],
)
def test_others_contaminate_a_gpu_cell_where_they_leave_no_core_idle(
    num_cores: int, own_cores: float, other_cores: float, expected: list[Verdict]
) -> None:
    use = make_cpu_use(1.0, own_cores=own_cores, num_machine_cores=num_cores, other_cores=other_cores)
    assert list_verdicts(make_gpu_inputs(cpu_use=use, num_threads=num_cores)) == expected


def test_a_neighbour_on_all_cores_of_a_gpu_cell_is_told_in_numbers() -> None:
    use = make_cpu_use(1.0, own_cores=1.1, num_machine_cores=16, other_cores=14.8)
    (reason,) = judge_validity(make_gpu_inputs(cpu_use=use)).reasons
    assert reason.message.startswith("others kept 14.8 of 16 cores busy: 1% of the machine were idle, less than 5%")


# throttled


@pytest.mark.parametrize(("clock", "expected"), [(1193, []), (1192, ["throttled"])])
def test_below_three_quarters_of_the_highest_clock_a_gpu_is_throttled(clock: int, expected: list[Verdict]) -> None:
    # 75% of 1590 MHz is 1192.5 MHz; the first sample alone is no median.
    gpu = make_gpu_use(sm_clock_mhz=(300, clock, clock), throttle_reasons={"software power cap": 1.0})
    validity = judge_validity(make_gpu_inputs(gpu_use=(gpu,)))
    assert [reason.verdict for reason in validity.reasons] == expected
    assert all("software power cap in 100% of samples" in reason.message for reason in validity.reasons)


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ({"software power cap": 1.0, "applications clocks setting": 1.0}, []),
        ({"hardware thermal slowdown": 0.05}, []),
        ({"hardware thermal slowdown": 0.06}, ["throttled"]),
        ({"software thermal slowdown": 0.06}, ["throttled"]),
        ({"hardware power brake slowdown": 1.0, "hardware slowdown": 1.0}, ["throttled", "throttled"]),
    ],
)
def test_heat_and_a_power_brake_throttle_at_any_clock(reasons: dict[str, float], expected: list[Verdict]) -> None:
    assert list_verdicts(make_gpu_inputs(gpu_use=(make_gpu_use(throttle_reasons=reasons),))) == expected


@pytest.mark.parametrize(("throttled_seconds", "expected"), [(0.09, []), (0.11, ["throttled"])])
def test_threads_that_the_quota_stops_for_a_twentieth_of_their_time_are_throttled(
    throttled_seconds: float, expected: list[Verdict]
) -> None:
    # Two threads in a window of 1 s have 2 s; that every period was cut is not what counts.
    use = make_cpu_use(1.0, num_periods=10, num_throttled_periods=10, throttled_seconds=throttled_seconds)
    assert list_verdicts(make_inputs(cpu_use=use)) == expected


# too-short


@pytest.mark.parametrize(
    ("num_steps", "step_seconds", "expected"),
    [
        (10, 0.051, []),
        (10, 0.049, ["too-short"]),
        (9, 0.1, ["too-short"]),
        (9, 0.5, ["too-short"]),
        (3, 1.7, []),
        (3, 1.6, ["too-short"]),
        (2, 60.0, ["too-short"]),
        (1, 0.1, ["too-short", "too-short"]),
    ],
)
def test_a_window_needs_half_a_second_and_ten_steps_or_three_long_ones(
    num_steps: int, step_seconds: float, expected: list[Verdict]
) -> None:
    assert list_verdicts(make_inputs((step_seconds,) * num_steps)) == expected


# not-steady


def test_a_warm_up_that_was_cut_off_is_not_steady() -> None:
    assert list_verdicts(make_inputs(reached_steady=False)) == ["not-steady"]


@pytest.mark.parametrize(("last", "expected"), [(0.1049, []), (0.1051, ["not-steady"]), (0.094, ["not-steady"])])
def test_a_level_that_changes_within_the_window_is_not_steady(last: float, expected: list[Verdict]) -> None:
    assert list_verdicts(make_inputs((0.1,) * 10 + (last,) * 10)) == expected


@pytest.mark.parametrize(
    ("thirds", "expected"),
    [
        # Each third of 12 steps is three blocks of 4. 1.16 is 16% above 1.0.
        (((1.16, 1.16, 1.16), (1.16, 1.0, 1.0), (1.0, 1.0, 1.0)), ["not-steady"]),  # a level that is left
        (((1.16, 1.10, 1.07), (1.03, 1.02, 1.01), (1.0, 1.0, 1.0)), ["not-steady"]),  # a warm-up that goes on
        (((1.0, 1.02, 1.04), (1.06, 1.08, 1.10), (1.12, 1.14, 1.16)), ["not-steady"]),  # heat
        (((1.16, 1.16, 1.0), (1.0, 1.16, 1.0), (1.0, 1.0, 1.16)), []),  # two levels in turns
    ],
)
def test_a_drift_is_told_from_two_levels_in_turns(
    thirds: tuple[tuple[float, ...], ...], expected: list[Verdict]
) -> None:
    steps = tuple(0.1 * level for third in thirds for level in third for _ in range(4))
    assert abs(measure_drift(steps)) > find_drift_bound(steps)
    assert list_verdicts(make_inputs(steps)) == expected


def test_in_few_steps_one_outlier_does_not_hide_a_drift() -> None:
    # Thirds of 3 steps; the first step follows a pause.
    assert list_verdicts(make_inputs((0.13, *(0.1,) * 4, *(0.12,) * 5))) == ["not-steady"]


def test_the_thirds_of_a_window_are_compared() -> None:
    steps = (1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 1.5, 1.5, 1.5)
    assert measure_drift(steps) == 0.5
    assert measure_drift((1.0, 2.0)) == 0.0


def test_noise_between_the_steps_widens_the_bound_of_a_drift_but_a_drift_does_not() -> None:
    drifting = tuple(1 + number / 100 for number in range(30))
    # Steps differ by 0.01 of a median of 1.145: far below what widens the bound.
    assert find_drift_bound(drifting) == 0.05
    noisy = (0.9, 1.1) * 15
    # 3 x 1.2533 x sqrt(2) x 1.0483 x 0.2 / 1.0 / sqrt(10) = 0.3525.
    assert find_drift_bound(noisy) == pytest.approx(0.3525, rel=1e-3)


# noisy


def test_the_spread_is_the_scaled_median_absolute_deviation_over_the_median() -> None:
    # Median 10; deviations 1 0 0 2 90: their median is 1.
    assert measure_spread((9.0, 10.0, 10.0, 12.0, 100.0)) == pytest.approx(0.14826)


@pytest.mark.parametrize(("spread", "expected"), [(0.0067, []), (0.0068, ["noisy"])])
def test_steps_that_spread_by_a_tenth_are_noisy(spread: float, expected: list[Verdict]) -> None:
    # Half of the steps at 0.1 - s, half at 0.1 + s: the deviation is s, a tenth of the median at s = 0.006745.
    assert list_verdicts(make_inputs((0.1 - spread, 0.1 + spread) * 10)) == expected


def test_single_outliers_are_no_noise() -> None:
    assert list_verdicts(make_inputs((0.1,) * 15 + (0.9,) + (0.1,) * 4)) == []
