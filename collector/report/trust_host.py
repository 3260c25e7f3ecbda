"""Judge whether the host was equally fast for all results: each process times matrix products in its own framework."""

from collections.abc import Sequence

from collector.analysis import Analysis
from collector.facts import list_some
from collector.product_rates import describe_drift, list_drifted
from collector.report.trust_line import MAX_NAMED, TrustLine
from collector.results.host_products import MAX_DRIFT, HostProducts
from collector.units import PERCENT, format_number


def judge_host_speed(analysis: Analysis) -> TrustLine | None:
    """Beware of a host on which products of one framework differed by more than MAX_DRIFT between results."""
    drifted = list(list_drifted(analysis.collection.host_products))
    if not drifted:
        return None
    named = "; ".join(list_some([f"on {one.host.name}, {describe_drift(one)}" for one in drifted], MAX_NAMED))
    return TrustLine(
        title="Speed of the host",
        text=(
            f"It changed by more than {100 * MAX_DRIFT:.0f} %: {named}. A cell's interval shows that "
            "only as far as its repeats met different speeds."
        ),
        state="beware",
        doubt=f"the host's speed changed by {_find_widest(drifted)} %",
        anchor="roofline",
    )


def _find_widest(drifted: Sequence[HostProducts]) -> str:
    """Return by how many percent the fastest products of a framework and host exceed its slowest; the widest first."""
    widest = drifted[0]
    return format_number(widest.high_flops_per_second / widest.low_flops_per_second - 1, PERCENT)
