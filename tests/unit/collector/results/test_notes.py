"""Notes of several repeats: each once, whatever its numbers, and none lost."""

import pytest

from collector.results.notes import merge_notes


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ([], None),
        (["ran at 73% of its 1980 MHz", "ran at 74% of its 1980 MHz"], "ran at 73% of its 1980 MHz"),
        (["a; b 1.5 ms", "b 2 ms; c"], "a; b 1.5 ms; c"),
        (["GPU-1111-22 is shared", "GPU-1111-33 is shared"], "GPU-1111-22 is shared; GPU-1111-33 is shared"),
    ],
)
def test_notes_that_differ_in_their_numbers_only_are_one(notes: list[str], expected: str | None) -> None:
    assert merge_notes(notes) == expected
