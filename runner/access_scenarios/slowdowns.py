"""The slowdowns of several tenants that a scenario states itself."""

from collections.abc import Mapping

from collector.access.choices import Slowdowns
from collector.access.scenario import Kind, Sharing


def state_slowdowns(kind: Kind) -> Mapping[Sharing, Slowdowns]:
    """Return the slowdowns that stand in the scenario, with the kind's source."""
    return {
        sharing: Slowdowns(by_tenants=by_tenants, origin="stated", source=kind.source or "")
        for sharing, by_tenants in kind.slowdowns.items()
        if by_tenants
    }
