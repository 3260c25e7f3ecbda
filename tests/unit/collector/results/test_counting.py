"""Which repeats count: those that figures come from."""

from collector.results.summary import list_invalid
from factories import make_cell, make_result, make_validity
from measured_runs import Collect


def test_repeats_that_are_not_valid_are_listed_with_their_reasons_and_whether_they_count(collect: Collect) -> None:
    other = make_cell(batch_size=1)
    results = [
        make_result(repeat=1),
        make_result(repeat=2, validity=make_validity("throttled", "noisy")),
        make_result(repeat=3, validity=make_validity("not-steady")),
        make_result(other, repeat=1, validity=make_validity("too-short")),
    ]
    rows = list_invalid(collect(*results))
    names = ["repeat", "verdict", "verdict_reasons", "counts"]
    assert list(rows[names].itertuples(index=False, name=None)) == [
        (2, "throttled", "made up to be throttled; made up to be noisy", "no"),
        (3, "not-steady", "made up to be not-steady", "yes"),
        (1, "too-short", "made up to be too-short", "for lack of sound ones"),
    ]
