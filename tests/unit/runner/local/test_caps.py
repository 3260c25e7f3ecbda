"""When a run on this machine ends by a deadline or by what it costs; all by hand."""

from datetime import datetime, timedelta

import pytest

from bench.errors import UserError
from bench.schema import PlannedCell
from factories import START, make_cell, make_result, make_run
from runner.local.caps import CapOptions, LocalCaps, check_prices
from runner.matrix.plan import Repeat

ON_CPU, ON_GPU = make_cell(), make_cell(device="gpu")
RUN = make_run([ON_CPU, ON_GPU])


def make_caps(options: CapOptions, *, now: datetime = START, **seconds: float) -> LocalCaps:
    cells = {"cpu": ON_CPU, "gpu": ON_GPU}
    taken = {(cells[name].cell_id, 1): spent for name, spent in seconds.items()}
    return LocalCaps.of(options, RUN, taken, lambda: now)


def make_repeat(device: str = "cpu") -> Repeat:
    cell = ON_GPU if device == "gpu" else ON_CPU
    return Repeat(planned=PlannedCell(cell=cell, repeats=3, timeout_seconds=60), number=2)


@pytest.mark.parametrize(("seconds", "is_over"), [(99, False), (100, True), (3600, True)])
def test_no_repeat_begins_after_the_deadline(seconds: float, is_over: bool) -> None:
    caps = make_caps(CapOptions(deadline_seconds=100), now=START + timedelta(seconds=seconds))
    assert caps.explain_end(make_repeat()) == ("the deadline of 100 s has passed" if is_over else None)


def test_a_run_that_was_begun_by_a_clock_ahead_has_its_time_from_now() -> None:
    caps = make_caps(CapOptions(deadline_seconds=100), now=START - timedelta(days=1))
    assert caps.deadline is not None
    assert caps.deadline - (START - timedelta(days=1)) < timedelta(seconds=200)


def test_a_repeat_that_would_pass_the_cap_does_not_begin() -> None:
    # 3.6 an hour is 0.001 a second: 400 s have cost 0.4, and one more of the kind will cost 0.4.
    prices = {"cpu": 3.6, "gpu": 36.0}
    repeat = make_repeat()
    enough = CapOptions(max_cost=0.8, prices=prices)  # type: ignore[arg-type]
    short = CapOptions(max_cost=0.79, prices=prices, currency="EUR")  # type: ignore[arg-type]
    assert make_caps(enough, cpu=400.0).explain_end(repeat) is None
    assert make_caps(short, cpu=400.0).explain_end(repeat) == (
        "the run has cost about 0.40 EUR; one more repeat would pass --max-cost 0.79"
    )
    # Nothing is known of GPU cells: one may begin while anything is left.
    assert make_caps(short, cpu=400.0).explain_end(make_repeat("gpu")) is None
    assert make_caps(short, cpu=790.0).explain_end(make_repeat("gpu")) == (
        "the run has cost about 0.79 EUR, which reaches --max-cost 0.79"
    )


def test_what_is_measured_adds_to_the_cost() -> None:
    caps = make_caps(CapOptions(max_cost=1.0, prices={"cpu": 3.6, "gpu": 36.0}))
    result = make_result(ON_GPU, repeat=2, started_at=START, finished_at=START + timedelta(seconds=60))
    caps.add(make_repeat("gpu"), result)
    assert caps.cost == pytest.approx(0.6)
    assert caps.explain_end(make_repeat("gpu")) is not None
    assert caps.explain_end(make_repeat("cpu")) is None


def test_a_cap_on_the_cost_needs_a_price_of_every_device() -> None:
    with pytest.raises(UserError, match=r"--max-cost: what an hour of this machine costs for gpu cells is not known"):
        check_prices(CapOptions(max_cost=1.0, prices={"cpu": 3.6}), ["gpu", "cpu"])
    check_prices(CapOptions(max_cost=1.0, prices={"cpu": 3.6}), ["cpu", "cpu"])


def test_without_caps_everything_is_measured() -> None:
    assert make_caps(CapOptions(), cpu=1e9).explain_end(make_repeat()) is None
