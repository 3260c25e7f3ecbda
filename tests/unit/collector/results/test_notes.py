"""Notes of several repeats: each once, whatever its numbers, with how many repeats have it, and none lost."""

import pytest

from collector.results.notes import merge_notes


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
