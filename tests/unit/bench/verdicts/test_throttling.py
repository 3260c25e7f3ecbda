"""throttled, by the CPU's quota: a measurement just within the bound and one just beyond."""

import pytest

from bench.schema import Verdict
from factories import make_cpu_use
from validity_inputs import list_verdicts, make_inputs


@pytest.mark.parametrize(("throttled_seconds", "expected"), [(0.09, []), (0.11, ["throttled"])])
def test_threads_that_the_quota_stops_for_a_twentieth_of_their_time_are_throttled(
    throttled_seconds: float, expected: list[Verdict]
) -> None:
    # Two threads in a window of 1 s have 2 s; that every period was cut is not what counts.
    use = make_cpu_use(1.0, num_periods=10, num_throttled_periods=10, throttled_seconds=throttled_seconds)
    assert list_verdicts(make_inputs(cpu_use=use)) == expected
