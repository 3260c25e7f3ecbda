"""Say of each headline claim of the study on which the run has a measurement what the run says about it."""

from collector.analysis import Analysis
from collector.answers.answer import Said
from collector.claims.verdicts import ClaimResult


def find_claims(analysis: Analysis) -> list[Said]:
    """Return a few sentences on each claim of the study's abstract of which the run has a ratio, in the study's order.

    A claim that is not tested at its own work is named too, with what was measured nearest to it: a reader who asks
    whether it holds here must not take silence for a yes.
    """
    return [
        Said(text=_say(result), anchor=name_claim_anchor(result.id))
        for result in analysis.derive(judge_claims)
        if result.is_headline and result.is_measured
    ]


def judge_claims(analysis: Analysis) -> tuple[ClaimResult, ...]:
    """Return the results of all claims of the study; none where no pair of cells was measured that bears on any."""
    return find_claim_results(analysis.summary, forecast=analysis.forecast, include_invalid=analysis.include_invalid)


def name_claim_anchor(claim_id: str) -> str:
    """Return the id that a claim of the study has in the report."""
    return f"claim-{claim_id}"


def _say(result: ClaimResult) -> str:
    parts = [f"{result.statement}, says the study: {result.verdict}", result.extremes, f"Why: {result.reason}"]
    return f"{'. '.join(filter(None, parts))}."
