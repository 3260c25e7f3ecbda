"""Makes the figures that the peak of a CPU cell's host is taken from, for tests."""

from typing import Any

from bench.schema import HostPeak


def make_host_figures(
    theoretical: float | None = 1.5e11, before: float | None = 1e11, after: float | None = 1e11, **overrides: Any
) -> HostPeak:
    """Return the host of a CPU cell: two cores of Zen 4 at the clock that the rate takes; rates in FLOP/s."""
    fields: dict[str, Any] = {
        "framework": "pytorch",
        "num_threads": 2,
        "num_cores": 2,
        "flops_per_cycle": 32,
        "clock_hertz": 2.6e9 if theoretical is None else theoretical / 64,
        "theoretical_flops_per_second": theoretical,
        "before_flops_per_second": before,
        "after_flops_per_second": after,
    }
    return HostPeak(**(fields | overrides))
