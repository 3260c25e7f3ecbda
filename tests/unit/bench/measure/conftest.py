"""The clock of what is measured here."""

import pytest

from scripted_workload import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in ("data.feed", "measure.calibration", "measure.harness", "measure.host_peak", "measure.passes"):
        monkeypatch.setattr(f"bench.{module}.perf_counter", clock.read)
    return clock
