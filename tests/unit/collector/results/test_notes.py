"""Notes of several repeats: each once, whatever its numbers, with how many repeats have it, and none lost."""

import pytest

from collector.results.summary import merge_notes


@pytest.mark.parametrize(
    ("notes", "num_repeats", "expected"),
    [
        ([], 2, None),
        (
            ["ran at 73% of its 1980 MHz", "ran at 74% of its 1980 MHz"],
            3,
            "ran at 73% of its 1980 MHz (2 of 3 repeats, figures of the first)",
        ),
        (
            ["a; b 1.5 ms", "b 2 ms; c"],
            2,
            "a (1 of 2 repeats); b 1.5 ms (2 of 2 repeats, figures of the first); c (1 of 2 repeats)",
        ),
        (["changed (+12%)", "changed (-3%)"], 2, "changed (+12%) (2 of 2 repeats, figures of the first)"),
        (["a; b", "b; a"], 2, "a; b"),
        (["near 1 ms; near 2 ms"], 1, "near 1 ms"),
        (
            ["steps on two levels, 89% near 17 ms and 11% near 19 ms: the mean of the steps counts"],
            1,
            "steps on two levels, 89% near 17 ms and 11% near 19 ms: the mean of the steps counts",
        ),
        (
            ["GPU-1111-22 is shared", "GPU-1111-33 is shared"],
            2,
            "GPU-1111-22 is shared (1 of 2 repeats); GPU-1111-33 is shared (1 of 2 repeats)",
        ),
    ],
)
def test_a_note_stands_once_with_the_repeats_that_have_it(
    notes: list[str], num_repeats: int, expected: str | None
) -> None:
    assert merge_notes(notes, num_repeats) == expected


def test_of_two_levels_a_cell_says_that_the_mean_stands_for_all_of_its_repeats() -> None:
    """One that reads "the mean counts (2 of 11 repeats)" takes the other nine for medians, which they are not."""
    found = [
        f"steps on two levels, {share}% near 17.3 ms and 11% near 19 ms: the mean of the steps counts"
        for share in (89, 90)
    ]
    assert merge_notes(found, 11, 11) == (
        "steps on two levels in 2 of 11 repeats, 89% near 17.3 ms and 11% near 19 ms in the first of them: the mean of "
        "the steps stands for all 11"
    )
    assert (merge_notes(found[:1], 3, 3) or "").endswith("near 19 ms: the mean of the steps stands for all 3")
    assert (merge_notes(found, 2, 2) or "").endswith("the mean of the steps stands for all 2")
    assert (merge_notes(found, 4) or "").endswith("the mean of the steps stands for 2")
