"""Conclude from the verdicts on all cells: the exit code, and what it means in a sentence."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from collector.facts import count_things
from collector.ratio_verdicts import NO_DIFFERENCE
from collector.versus.document import CellComparison, ExitCode, GroupComparison

COMPARED = ("worse", "better", "same", "undecided", "fails")
NO_PROOF = "That does not say that they are the same."


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
    words: Mapping[str, str],
    *,
    fails_undecided: bool,
) -> tuple[ExitCode, str]:
    """Return the exit code and its reason; `words` for the verdicts.

    1: B is worse, in a cell or over a group of cells, or a cell fails in B that A measured. 2: nothing was compared;
    or, if `fails_undecided`, nothing is worse and something is undecided. 0: otherwise. Undecided cells are counted in
    the sentence: they are not the same.
    """
    counts = Counter(str(cell.verdict) for cell in cells)
    worse_groups = [group.label for group in together if group.verdict == "worse"]
    found = describe_counts(counts, words)
    if counts["worse"] or counts["fails"] or worse_groups:
        groups = f"; {' and '.join(worse_groups)} together are {words['worse']}" if worse_groups else ""
        return 1, f"B is worse: of {count_things(len(cells), 'cell')} {found}{groups}."
    if not any(counts[verdict] for verdict in COMPARED):
        return 2, f"Nothing could be compared: of {count_things(len(cells), 'cell')} none is comparable."
    sentence = f"Nothing is shown to be {words['worse']} in B: of {count_things(len(cells), 'cell')} {found}."
    if not counts["undecided"]:
        return 0, sentence
    proof = NO_PROOF if words["undecided"] == NO_DIFFERENCE else "Undecided is not the same."
    return (2 if fails_undecided else 0), f"{sentence} {proof}"


def describe_counts(counts: Counter[str], words: Mapping[str, str]) -> str:
    """Return how many cells have which verdict: `1 slower, 3 within the floor`."""
    texts = {**words, "fails": "fail in B"}
    if words["undecided"] == NO_DIFFERENCE:
        texts["undecided"] = f"with {NO_DIFFERENCE}"
    return ", ".join(f"{counts[verdict]} {text}" for verdict, text in texts.items() if counts[verdict])
