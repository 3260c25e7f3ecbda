"""Compare what the user named, as `benchmatrix compare` and `benchmatrix.compare` do."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.errors import UserError
from runner.reporting.compared_runs import RunChoice, load_compared

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.versus.comparison import Question
    from collector.versus.document import CompareDocument


def compare_runs(
    choice: RunChoice,
    where: Sequence[str] = (),
    metric: str | None = None,
    *,
    floor: float | None = None,
    include_invalid: bool = False,
    fails_undecided: bool = False,
) -> "tuple[Question, CompareDocument]":
    """Return what was asked, and the comparison. Raise UserError if something does not fit.

    `metric`: None for the step time, and where the batches of A and B differ the time per sample. `floor`: in percent.
    """
    from collector.versus.comparison import Question, compare_sides
    from collector.versus.metrics import METRICS
    from collector.versus.selections import parse_condition

    known = {str(name): found for name, found in METRICS.items()}
    if metric is not None and metric not in known:
        raise UserError(f"--metric {metric}: expected {', '.join(known)}")
    if floor is not None and not 0 < floor <= 100:
        raise UserError(f"--floor {floor:g}: expected percents above 0, 100 at the most, such as 5")
    conditions = tuple(parse_condition(text, "--where") for text in where)
    compared = load_compared(choice)
    question = Question(
        a=compared.a,
        b=compared.b,
        where=conditions,
        metric=None if metric is None else known[metric],
        floor=None if floor is None else floor / 100,
        include_invalid=include_invalid,
        fails_undecided=fails_undecided,
    )
    return question, compare_sides(question, compared.collections, compared.related)
