"""Conclude from the verdicts on all cells: the exit code, and what it means in a sentence."""

from collections import Counter
from collections.abc import Sequence

from collector.facts import count_things
from collector.versus.document import CellComparison, ExitCode, GroupComparison
from collector.versus.metrics import Metric

COMPARED = ("worse", "better", "same", "undecided", "fails")


def conclude(
    cells: Sequence[CellComparison], together: Sequence[GroupComparison], metric: Metric, *, fails_undecided: bool
) -> tuple[ExitCode, str]:
    """Return the exit code and its reason.

    1: B is worse, in a cell or over a group of cells, or a cell fails in B that A measured. 2: nothing was compared;
    or, if `fails_undecided`, nothing is worse and something is undecided. 0: otherwise. Undecided cells are counted in
    the sentence: they are not the same.
    """
    counts = Counter(str(cell.verdict) for cell in cells)
    worse_groups = [group.label for group in together if group.verdict == "worse"]
    found = describe_counts(counts, metric)
    if counts["worse"] or counts["fails"] or worse_groups:
        groups = f"; {' and '.join(worse_groups)} together are {metric.worse}" if worse_groups else ""
        return 1, f"B is worse: of {count_things(len(cells), 'cell')} {found}{groups}."
    if not any(counts[verdict] for verdict in COMPARED):
        return 2, f"Nothing could be compared: of {count_things(len(cells), 'cell')} none is comparable."
    sentence = f"Nothing is shown to be {metric.worse} in B: of {count_things(len(cells), 'cell')} {found}."
    if not counts["undecided"]:
        return 0, sentence
    return (2 if fails_undecided else 0), f"{sentence} Undecided is not the same."


def describe_counts(counts: Counter[str], metric: Metric) -> str:
    """Return how many cells have which verdict: `1 slower, 3 within the floor`."""
    words = {
        "fails": "fail in B",
        "worse": metric.worse,
        "better": metric.better,
        "same": "within the floor",
        "undecided": "undecided",
        "not comparable": "not comparable",
    }
    return ", ".join(f"{counts[verdict]} {text}" for verdict, text in words.items() if counts[verdict])
