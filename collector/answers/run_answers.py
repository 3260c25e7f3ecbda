"""Choose the sentences that a run is summed up in: a bounded number, whatever the run's size."""

from collections.abc import Sequence

from collector.analysis import Analysis
from collector.answers.answer import Answer, Rule, Said
from collector.answers.certainty import find_common_basis, state_basis, state_certainty, state_own_basis
from collector.answers.rules import FINDINGS
from collector.answers.unknown_list import UNKNOWNS

MAX_FINDINGS = 10
"""Sentences on what was found: what a reader takes in before the first table."""
FASTEST_RULE = "fastest"
TABLED_RULES = (FASTEST_RULE, "frameworks-over-all", "devices", "modes", "precisions", "cost-span")
"""The rules whose sentences the report shows as tables, with all of their rows."""
WIDTH_RULE = "certainty"
"""The rule of the sentence on how wide the intervals of step times are."""
MAX_TABLED = 1_000
"""Rows of such a table that what findings have in common is looked for in."""
MAX_FASTEST = 10
"""Sentences of that rule beside the others; more are in the table."""
MORE_RULE = "more"
"""The rule of the sentence that counts the findings that are not shown."""
CERTAINTY_RULE = "how-sure"
"""The rule of the sentences that say once what the findings above them rest on."""


def answer_run(analysis: Analysis, *, has_tables: bool = False) -> list[Answer]:
    """Return the findings of a run in the order of the rules, and then what is not known.

    `has_tables`: those of TABLED_RULES stand beside them as tables, so that none of them is said, nor counted as left
    over; what all findings rest on is that of the tables too.

    At most MAX_FASTEST of which program is fastest, and MAX_FINDINGS others, of which every rule's first sentence comes
    before any rule's second one. What several findings rest on is said once, below them. If findings are left over, a
    sentence says how many more the tables have.
    """
    said = [(rule, list(rule.find(analysis))) for rule in FINDINGS]
    tabled = TABLED_RULES if has_tables else ()
    shared = share_places(
        [0 if rule.id in (FASTEST_RULE, *tabled) else len(found) for rule, found in said], MAX_FINDINGS
    )
    most = {FASTEST_RULE: MAX_FASTEST} | dict.fromkeys(tabled, MAX_TABLED)
    numbers = [min(len(found), most.get(rule.id, number)) for (rule, found), number in zip(said, shared, strict=True)]
    chosen = [(rule, one) for (rule, found), number in zip(said, numbers, strict=True) for one in found[:number]]
    rest = [(rule, len(found) - number) for (rule, found), number in zip(said, numbers, strict=True)]
    more = _count_more([(rule, number) for rule, number in rest if number and rule.id not in tabled])
    unknown = [_make_answer(rule, one, one.text) for rule in UNKNOWNS for one in rule.find(analysis)]
    findings = [one for one in _say_with_certainty(chosen) if one.rule not in tabled]
    return [*findings, *more, *unknown]


def share_places(numbers: Sequence[int], num_places: int) -> list[int]:
    """Return how many of the places each gets that has so many to fill: the first of each, then the second of each."""
    shares = [0] * len(numbers)
    for _ in range(max(numbers, default=0)):
        for index, number in enumerate(numbers):
            if sum(shares) < num_places and shares[index] < number:
                shares[index] += 1
    return shares


def _say_with_certainty(chosen: Sequence[tuple[Rule, Said]]) -> list[Answer]:
    """Return the findings, and below them what they rest on, as far as no sentence says it itself."""
    findings = [said for _, said in chosen]
    common = find_common_basis(findings)
    answers = []
    for rule, said in chosen:
        texts = filter(None, [said.text, state_own_basis(said.basis, common)])
        answers.append(_make_answer(rule, said, " ".join(texts)))
    certainty = state_certainty(findings, common)
    if certainty:
        answers.append(Answer(rule=CERTAINTY_RULE, text=certainty, anchor="method", kind="finding"))
    return answers


def _count_more(rest: Sequence[tuple[Rule, int]]) -> list[Answer]:
    if not rest:
        return []
    rules = ", ".join(f"{number:,} of {rule.id}" for rule, number in rest)
    text = f"More such findings are in the tables: {rules}."
    return [Answer(rule=MORE_RULE, text=text, anchor="comparisons", kind="finding")]


def _make_answer(rule: Rule, said: Said, text: str) -> Answer:
    return Answer(
        rule=rule.id,
        text=text,
        anchor=said.anchor,
        kind=rule.kind,
        is_on_terminal=rule.is_on_terminal,
        basis=state_basis(said),
        title=rule.title,
    )
