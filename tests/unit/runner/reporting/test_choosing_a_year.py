"""The year of a forecast that nobody named follows from this machine's clock, unless that cannot be right."""

from datetime import UTC, datetime

import pytest

from bench.errors import UserError
from runner.reporting import report_files
from runner.reporting.report_files import choose_year


def set_clock(year: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> "Clock":
            return cls(year, 6, 1, tzinfo=UTC)

    monkeypatch.setattr(report_files, "datetime", Clock)


@pytest.mark.parametrize("year", [1970, 1999, 2025, 2100, 2150])
def test_a_clock_that_cannot_be_right_is_named(year: int, monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(year, monkeypatch)
    with pytest.raises(UserError, match=rf"clock says {year}-06-01, .*: set it, or give the year \(--year\)"):
        choose_year(None)
    assert choose_year(2030) == 2030


def test_it_is_some_years_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(2031, monkeypatch)
    assert choose_year(None) == 2031 + report_files.FORECAST_YEARS_AHEAD
