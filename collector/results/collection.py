"""Hold one run with its results in tidy, immutable tables."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from bench.schema import Environment, NodeFault, Run

if TYPE_CHECKING:
    from collector.results.host_peaks import HostProducts
    from collector.results.steps import StepTimes


@dataclass(frozen=True, kw_only=True)
class SkippedDocument:
    """A key under the run that does not count, and why, in one line."""

    key: str
    reason: str
    is_unread: bool = False
    """Whether the store does not give it at present, so that nobody knows what it says."""


@dataclass(frozen=True, kw_only=True)
class Collection:
    """One run with all that was measured for it. Base units only: seconds, bytes."""

    run: Run
    results: pd.DataFrame
    """One row per planned repeat, columns `collector.results.frames.RESULT_COLUMNS`; status `missing`: no
    result, `unreadable`: one that the store does not give."""
    tenants: pd.DataFrame
    """One row per tenant of the counted attempts that had tenants, columns `frames.TENANT_COLUMNS`."""
    steps: "StepTimes" = field(repr=False)
    """The raw step times of the counted attempts, which are read when they are asked for."""
    environments: dict[str, Environment]
    """`environment_id` to the first environment seen that has it."""
    skipped: tuple[SkippedDocument, ...]
    host_products: "tuple[HostProducts, ...]" = ()
    """At which rates matrix products ran on each host: the shares of CPU cells refer to the highest."""
    node_faults: tuple[NodeFault, ...] = ()
    """The attempts that nodes of a cluster could not measure, the oldest first; their repeats were tried again."""
    notices: tuple[str, ...] = ()
    """What the user should know of the collection itself, one line each: that the store cannot be written."""
    doubts: tuple[str, ...] = ()
    """What results that count say of themselves and cannot be so, a sentence each: dates."""
    num_contaminated: int = 0
    """Planned repeats that others disturbed in every attempt that ended ok, whatever graver verdict those have."""

    def count_verdicts(self) -> Counter[str]:
        """Return how many of the repeats that ended ok have each verdict; `no verdict` where there is none."""
        ok = self.results[self.results["status"] == "ok"]
        return Counter(
            str(verdict) for verdict in ok["verdict"].astype(object).where(ok["verdict"].notna(), "no verdict")
        )

    @cached_property
    def samples(self) -> pd.DataFrame:
        """One row per step of the counted attempts, columns of `collector.results.frames.SAMPLE_COLUMNS`.

        All of them are in memory then: `steps` has them group by group.
        """
        return pd.concat(self.steps.tabulate(), ignore_index=True)
