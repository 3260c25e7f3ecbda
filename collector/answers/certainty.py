"""Say once on what the findings of a run rest and how many figures were judged together, not in each of them."""

from collections import Counter
from collections.abc import Sequence

from collector.answers.answer import Basis, Figures, Said

MIN_SHARING = 2
"""Findings that share a basis before it is said once for them: of one, it stands in its own sentence."""
TOGETHER = "all hold the truth in 95 % of cases, if both sides vary alike"
"""Welch's degrees of freedom are estimated: docs/report.md has in how many cases it is otherwise."""


def find_common_basis(findings: Sequence[Said]) -> Basis | None:
    """Return what most findings rest on, the first of several; None where no two rest on the same.

    The same are machines of the same names: two ratios of one card each, which are two cards, have no basis in common.
    """
    counts = Counter(said.basis for said in findings if said.basis is not None).most_common(1)
    return counts[0][0] if counts and counts[0][1] >= MIN_SHARING else None


def describe_basis(basis: Basis) -> str:
    """Return a basis in words: `on one card, 3 repeats`, `across machines, 2 cards a side, 3 to 5 repeats`."""
    where = basis.scope if basis.scope.startswith("across ") else f"on {basis.scope}"
    return f"{where}, {describe_repeats(basis)}"


def describe_repeats(basis: Basis) -> str:
    """Return `3 repeats`, `3 to 5 repeats`."""
    return f"{count_repeats(basis)} repeats"


def count_repeats(basis: Basis) -> str:
    """Return `3`, `3 to 5`."""
    lowest, highest = basis.num_repeats
    return f"{lowest}" if lowest == highest else f"{lowest} to {highest}"


def state_own_basis(basis: Basis | None, common: Basis | None) -> str:
    """Return as a sentence what a finding rests on where the note on all of them, of `common`, does not say it.

    Machines that the note calls by the same words, and which are others, are said to be others.
    """
    if basis is None or basis == common:
        return ""
    is_named_alike = common is not None and basis.scope == common.scope and basis.machines != common.machines
    others = "; not the same machines as in the note below" if is_named_alike else ""
    return begin_sentence(f"{describe_basis(basis)}{others}")


def state_basis(said: Said) -> str:
    """Return what a finding rests on as a sentence of its own: the basis, and the figures that it was judged with."""
    parts = [describe_basis(said.basis)] if said.basis is not None else []
    if said.figures is not None and said.figures.number > 1:
        parts.append(f"intervals 95 % together for {_count(said.figures)}")
    return begin_sentence("; ".join(parts)) if parts else ""


def state_certainty(findings: Sequence[Said], common: Basis | None) -> str:
    """Return what the findings share: their basis, and the figures that each was judged together with.

    Empty where they share no basis and each quotes a single figure.
    """
    texts = []
    if common is not None:
        is_for_all = all(said.basis in (None, common) for said in findings)
        # A change over the nights is a ratio too, of one cell: its sentence says by how many repeats it is known.
        which = "All ratios above" if is_for_all else "Ratios above that do not say otherwise"
        texts.append(f"{which}: {describe_basis(common)} a side.")
    figures = list(dict.fromkeys(said.figures for said in findings if said.figures is not None))
    several = [one for one in figures if one.number > 1]
    tested = [_count(one) for one in several if one.are_tested]
    if tested:
        texts.append(
            f"A difference is stated where its interval excludes equality; the intervals of a table "
            f"({', '.join(tested)}) {TOGETHER}."
        )
    untested = [one for one in several if not one.are_tested]
    for together, are_ratios in ((TOGETHER, True), ("all hold the truth in 95 % of cases", False)):
        quoted = [_count(one) for one in untested if one.are_ratios == are_ratios]
        if quoted:
            texts.append(f"The intervals of {' and of '.join(quoted)} {together}; these are not tested.")
    return " ".join(texts)


def begin_sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def _count(figures: Figures) -> str:
    return f"{figures.number:,} {figures.name}"
