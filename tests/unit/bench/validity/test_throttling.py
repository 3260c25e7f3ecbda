"""throttled: a measurement just within each bound and one just beyond."""

import pytest

from bench.schema import Verdict
from bench.validity import judge_validity
from factories import make_cpu_use, make_gpu_use
from validity_inputs import list_verdicts, make_gpu_inputs, make_inputs


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
