"""What is said of a night: also of what nothing can be said."""

from pathlib import Path

import pytest

from bench.store import Store
from nights import CELLS, SLOWED, SimulatedNights
from runner.alarms import list_lines, make_document
from runner.nights import Watch

NOT_LOOKED_AT = (
    "1 of 3 planned cells are not looked at: none of their repeats counts (they have no result or "
    "failed, or their verdict says that they were disturbed)"
)
TOO_NEW = "can be said yet: a change is seen against 2 nights with repeats that count, at the least"


@pytest.fixture
def nights(tmp_path: Path) -> SimulatedNights:
    return SimulatedNights(store=Store.open(f"file://{tmp_path}/store"))


def look(nights: SimulatedNights) -> list[str]:
    return list_lines(Watch(store=nights.store).look())[1:]


def test_the_first_nights_have_nothing_to_be_compared_with(nights: SimulatedNights) -> None:
    for number in (0, 1):
        nights.put_night(number)
        assert look(nights) == [f"nothing {TOO_NEW}"]
    nights.put_night(2)
    assert look(nights) == ["no change is suspected"]


def test_a_cell_whose_repeats_were_all_disturbed_is_not_passed_over_in_silence(nights: SimulatedNights) -> None:
    for number in (0, 1):
        nights.put_night(number)
    nights.put_night(2, disturbed=[SLOWED], factors={SLOWED.cell_id: 3.0})

    assert look(nights) == [NOT_LOOKED_AT, "no change is suspected"]
    document = make_document(Watch(store=nights.store).look())
    assert (document["num_cells"], document["num_uncounted"], document["num_too_new"]) == (2, 1, 0)


def test_a_night_without_any_repeat_that_counts_says_only_that(nights: SimulatedNights) -> None:
    for number in range(3):
        nights.put_night(number)
    nights.put_night(3, disturbed=CELLS)

    assert look(nights) == [NOT_LOOKED_AT.replace("1 of 3", "3 of 3")]
