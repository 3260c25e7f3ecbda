"""Judge whether the host was equally fast for all results: each process times matrix products in its own framework."""

from collector.analysis import Analysis
from collector.facts import list_some
from collector.product_rates import describe_drift, describe_widest_drift, list_drifted
from collector.report.trust_line import MAX_NAMED, TrustLine
from collector.results.host_products import MAX_DRIFT


def judge_host_speed(analysis: Analysis) -> TrustLine | None:
    """Beware of a host on which products of one framework differed by more than MAX_DRIFT between results."""
    drifted = list(list_drifted(analysis.collection.host_products))
    if not drifted:
        return None
    named = "; ".join(list_some([f"on {one.host.name}, {describe_drift(one)}" for one in drifted], MAX_NAMED))
    return TrustLine(
        title="Speed of the host",
        text=(
            f"It changed by more than {100 * MAX_DRIFT:.0f} %: {named}. Intervals may be too narrow for "
            "that: they show it only as far as a cell's repeats met different speeds."
        ),
        state="beware",
        doubt=f"the host's speed changed by {describe_widest_drift(drifted)}",
        anchor="roofline",
    )
