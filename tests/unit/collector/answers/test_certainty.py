"""The note on what findings rest on claims it of none that rests on something else."""

from collector.answers.answer import Basis, Figures, Said
from collector.answers.certainty import state_certainty

CARD = Basis(scope="one card", machines=frozenset({"GPU-1"}), num_repeats=(3, 3))
FRAMEWORKS = Figures(name="ratios of frameworks", number=12)


def say(basis: Basis | None = None, figures: Figures | None = None) -> Said:
    """Return a finding that rests on this."""
    return Said(text="Something.", anchor="", basis=basis, figures=figures)


def test_without_a_common_basis_the_note_speaks_of_ratios_and_not_of_the_sentence_before_it() -> None:
    # The sentence before it may be that on step times, each of which has an interval of its own.
    assert state_certainty([say(CARD, FRAMEWORKS), say()], None) == (
        "A difference is stated where its interval excludes equality; the intervals of a table (12 ratios of "
        "frameworks) all hold the truth in 95 % of cases, if both sides vary alike."
    )


def test_intervals_of_ratios_hold_under_the_same_conditions_where_they_are_not_tested() -> None:
    scaling = Figures(name="ratios of weak scaling", number=4, are_tested=False)
    costs = Figures(name="costs", number=8, are_tested=False, are_ratios=False)
    assert state_certainty([say(figures=scaling), say(figures=costs)], None) == (
        "The intervals of 4 ratios of weak scaling all hold the truth in 95 % of cases, if both sides vary alike; "
        "these are not tested. The intervals of 8 costs all hold the truth in 95 % of cases; these are not tested."
    )


def test_findings_with_one_figure_each_and_no_common_basis_have_no_note() -> None:
    assert state_certainty([say(CARD, Figures(name="ratios of devices", number=1)), say()], None) == ""
