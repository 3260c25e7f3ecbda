"""Conclude from the verdicts on all cells: the exit code, and what it means in a sentence."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from collector.facts import count_things
from collector.ratio_verdicts import NO_DIFFERENCE
from collector.versus.document import CellComparison, ExitCode, GroupComparison
from collector.versus.metrics import Metric
from collector.versus.side_answers import answer_sides

COMPARED = ("worse", "better", "same", "undecided", "fails")


class HasWords(Protocol):
    """A metric, or the description of one: the words for what is worse and better."""

    @property
    def worse(self) -> str:
        """Return the word for B where it is worse, such as `slower`."""

    @property
    def better(self) -> str:
        """Return the word for B where it is better, such as `faster`."""


def name_verdicts(metric: HasWords, *, is_within_runs: bool) -> dict[str, str]:
    """Return the words for each verdict, in the order in which they are counted; of one run they are the report's."""
    return {
        "fails": "fails in B",
        "worse": metric.worse,
        "better": metric.better,
        "same": "within the floor",
        "undecided": NO_DIFFERENCE if is_within_runs else "undecided",
        "not comparable": "not comparable",
    }


def conclude(
    cells: Sequence[CellComparison],
    together: Sequence[GroupComparison],
    metric: Metric,
    *,
    is_within_runs: bool,
    fails_undecided: bool,
) -> tuple[ExitCode, str]:
    """Return the exit code, and what was found in a few sentences.

    1: B is worse, in a cell or over a group of cells, or a cell fails in B that A measured. 2: nothing was compared;
    or, if `fails_undecided`, nothing is worse and something is undecided. 0: otherwise. Of two runs the sentence says
    whether B is worse, of two sides of the same runs which one is better. Undecided cells are named too: they are not
    the same.
    """
    counts = Counter(str(cell.verdict) for cell in cells)
    words = name_verdicts(metric, is_within_runs=is_within_runs)
    worse_groups = [group.label for group in together if group.verdict == "worse"]
    if not any(counts[verdict] for verdict in COMPARED):
        return 2, f"Nothing could be compared: of {count_things(len(cells), 'cell')} none is comparable."
    code: ExitCode = 2 if fails_undecided and counts["undecided"] else 0
    if counts["worse"] or counts["fails"] or worse_groups:
        code = 1
    if is_within_runs:
        return code, answer_sides(cells, together, metric, words)
    found = f"of {count_things(len(cells), 'cell')} {describe_counts(counts, words)}"
    if code == 1:
        groups = f"; {' and '.join(worse_groups)} together are {words['worse']}" if worse_groups else ""
        return code, f"B is worse: {found}{groups}."
    proof = " Undecided is not the same." if counts["undecided"] else ""
    return code, f"Nothing is shown to be {words['worse']} in B: {found}.{proof}"


def describe_counts(counts: Mapping[str, int], words: Mapping[str, str]) -> str:
    """Return how many cells have which verdict: `1 slower, 3 within the floor`."""
    texts = {**words, "fails": "fail in B"}
    return ", ".join(f"{counts[verdict]} {text}" for verdict, text in texts.items() if counts[verdict])
