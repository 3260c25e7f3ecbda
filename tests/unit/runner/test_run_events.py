"""How the lines of progress say that a repeat ended, with the short form of the reason of a verdict."""

import pytest

from bench.schema import Reason, Validity, Verdict
from factories import make_cell, make_failed_result, make_result
from runner.run_events import describe_end, describe_verdict, find_lengthening


@pytest.mark.parametrize(
    ("verdict", "message", "expected"),
    [
        (
            "contaminated",
            "others kept 1.4 of 2 cores busy: the cell's 2 threads were short of 1.4 cores, more than 10% of 2",
            "contaminated (others kept 1.4 of 2 cores busy)",
        ),
        (
            "contaminated",
            "300 MiB of GPU-1 were in use by others before the start, more than 100",
            "contaminated (300 MiB of GPU-1 were in use by others before the start)",
        ),
        (
            "too-short",
            "the timed window lasted 0.20 s, less than 0.5 s",
            "too-short (the timed window lasted 0.20 s)",
        ),
        ("noisy", "\x1b[2Jred", "noisy ( [2Jred)"),
    ],
)
def test_a_verdict_stands_with_the_short_form_of_its_reason(verdict: Verdict, message: str, expected: str) -> None:
    reasons = (Reason(verdict="noisy", message="another: reason"), Reason(verdict=verdict, message=message))
    assert describe_verdict(Validity(verdict=verdict, reasons=reasons[verdict == "noisy" :])) == expected


def test_a_line_says_what_was_measured_and_what_is_wrong_with_it() -> None:
    cell = make_cell()
    reason = Reason(verdict="contaminated", message="others kept 1.0 of 2 cores busy: and so on")
    validity = Validity(verdict="contaminated", reasons=(reason,))

    line = describe_end(make_result(cell, step_seconds=(2.5,), validity=validity), "slug", 3, "4.0 s")
    failed = describe_end(make_failed_result(cell, repeat=2, message="killed\nby 9"), "slug", 3)

    assert line.plain == (
        "ok      slug  repeat 1/3  4.0 s  step 2,500 ms  contaminated (others kept 1.0 of 2 cores busy)"
    )
    assert failed.plain == "failed  slug  repeat 2/3  killed by 9"


@pytest.mark.parametrize(
    ("num_steps", "expected"),
    [(10, 1), (19, 1), (20, 2), (40, 4)],
    ids=("as asked for", "nearly twice", "twice", "four times"),
)
def test_a_line_says_why_a_repeat_took_longer(num_steps: int, expected: int) -> None:
    """Two repeats of one cell that take 9 and 15 s look as if something went wrong with the second."""
    cell = make_cell(num_steps=10, min_seconds=1.0)
    result = make_result(cell, step_seconds=(0.1, 0.12) * (num_steps // 2) + (0.1,) * (num_steps % 2))
    assert find_lengthening(result) == expected
    line = describe_end(result, "slug", 3).plain
    assert (f"window {expected} times as long (steps on two levels)" in line) is (expected > 1)
