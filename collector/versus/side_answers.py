"""Answer in a few sentences which side of one run is better: in which cells, and by how much."""

from collections.abc import Sequence
from typing import Protocol

from collector.ratio_words import format_ratio, format_ratios
from collector.units import NOT_THERE
from collector.versus.document import CellComparison, GroupComparison

MAX_NAMED = 4
"""Cells that are named of each verdict."""
NO_PROOF = "That does not say that they are the same."
DECIDED = ("better", "worse")


class Words(Protocol):
    """A metric: its name, and the words for what is worse and better."""

    @property
    def title(self) -> str:
        """Return the name, such as `step time`."""

    @property
    def is_time(self) -> bool:
        """Return whether less of it makes a side faster."""


def answer_sides(
    cells: Sequence[CellComparison],
    together: Sequence[GroupComparison],
    metric: Words,
    verdicts: dict[str, str],
) -> str:
    """Return which side is better, of one cell with its interval, of several with the range of their ratios.

    `cells`: at least one of them compared; `verdicts`: the words for each, in the order in which they are said.
    """
    name_a, name_b = _find_common_names(cells)
    quantity = metric.title.partition(" (")[0]
    if len(cells) == 1:
        found = _answer_one(cells[0], name_a, name_b, quantity, verdicts, is_time=metric.is_time)
    else:
        counted = (_describe_cells(cells, verdict, words) for verdict, words in verdicts.items())
        found = f"{name_b} against {name_a} ({quantity}, B / A): {'; '.join(filter(None, counted))}."
    proof = NO_PROOF if any(cell.verdict == "undecided" for cell in cells) else ""
    means = (
        f"{_capitalize(group.label)} together are {verdicts[group.verdict]}."
        for group in together
        if group.verdict in DECIDED
    )
    return " ".join(filter(None, [found, proof, *means]))


def _find_common_names(cells: Sequence[CellComparison]) -> tuple[str, str]:
    """Return what the sides are in all cells, such as `PyTorch eager` and `JAX compiled`; else `A` and `B`."""
    names = {(cell.name_a, cell.name_b) for cell in cells}
    return names.pop() if len(names) == 1 else ("A", "B")


def _answer_one(
    cell: CellComparison, name_a: str, name_b: str, quantity: str, verdicts: dict[str, str], *, is_time: bool
) -> str:
    verdict = verdicts[cell.verdict]
    if cell.ratio is None:
        return f"{name_b} {verdict}: {cell.reason}."
    if cell.verdict in DECIDED and is_time:
        return f"{name_b} is {verdict}: {_format_ratio(cell)} of the {quantity} of {name_a}."
    if cell.verdict in DECIDED:
        return f"{_capitalize(quantity)} of {name_b} is {verdict}: {_format_ratio(cell)} of that of {name_a}."
    return f"{_capitalize(verdict)}: {quantity} of {name_b} is {_format_ratio(cell)} of that of {name_a}."


def _describe_cells(cells: Sequence[CellComparison], verdict: str, words: str) -> str:
    """Return `faster in 2 of 4 cells (0.811 and 0.869: conv6 train; conv6 infer)`; empty where no cell has it."""
    found = [cell for cell in cells if cell.verdict == verdict]
    if not found:
        return ""
    number = f"all {len(cells)}" if len(found) == len(cells) else f"{len(found)} of {len(cells)}"
    more = f"; {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    named = "; ".join(cell.label for cell in found[:MAX_NAMED])
    ratios = _format_range(found)
    return f"{words} in {number} cells ({f'{ratios}: ' if ratios else ''}{named}{more})"


def _format_range(cells: Sequence[CellComparison]) -> str:
    """Return `ratios 0.811 to 0.869`, or the one ratio with its interval; empty without any."""
    known = sorted((cell for cell in cells if cell.ratio is not None), key=lambda cell: cell.ratio or 0.0)
    if len(known) < 2:
        return "".join(f"ratio {_format_ratio(cell)}" for cell in known)
    low, high = (_format_center(cell) for cell in (known[0], known[-1]))
    return f"ratios {low} to {high}"


def _format_ratio(cell: CellComparison) -> str:
    """Return `0.865 (0.813 to 0.920)`: the ratio with the interval that its verdict is read from, where it has one."""
    if cell.joint_low is None or cell.joint_high is None:
        return _format_center(cell)
    return f"{_format_center(cell)} ({' to '.join(format_ratios(cell.joint_low, cell.joint_high))})"


def _format_center(cell: CellComparison) -> str:
    return NOT_THERE if cell.ratio is None else format_ratio(cell.ratio)


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
