"""Hold one run: its results in tidy tables, and its raw step times."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from bench.schema import Environment, NodeFault, Run
from collector.results.frames import SAMPLE_COLUMNS, STEP_SERIES, make_frame
from collector.results.stored_tables import SkippedDocument
from collector.statistics import FloatArray


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
    host_products: pd.DataFrame
    """At which rates matrix products ran on each host (`relate_to_hosts`): shares of CPU cells refer to the highest."""
    node_faults: tuple[NodeFault, ...] = ()
    """The attempts that nodes of a cluster could not measure, the oldest first; their repeats were tried again."""
    notices: tuple[str, ...] = ()
    """What the user should know of the collection itself, one line each: that the store cannot be written."""
    num_contaminated: int = 0
    """Planned repeats that others disturbed in every attempt that ended ok, whatever graver verdict those have."""

    def count_verdicts(self) -> Counter[str]:
        """Return how many of the repeats that ended ok have each verdict; `no verdict` where there is none."""
        ok = self.results[self.results["status"] == "ok"]
        return Counter(ok["verdict"].fillna("no verdict").tolist())

    @cached_property
    def samples(self) -> pd.DataFrame:
        """One row per step of the counted attempts, columns of `collector.results.frames.SAMPLE_COLUMNS`."""
        return self.steps.tabulate()


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """The raw step times of the attempts that count, in seconds: a row of `owners` for each series."""

    owners: pd.DataFrame
    """row (of `series`), place (of the repeat in the results), cell_id, repeat, tenant, num_steps (warm-up included);
    of a repeat, tenant 0 first."""
    series: pa.Table = field(repr=False)
    """STEP_SERIES."""

    def read_timed(self, place: int) -> list[FloatArray]:
        """Return the timed steps of all tenants of the repeat at a place in the results, tenant 0 first."""
        return [self._read("step_seconds", row) for row in self._rows.get(place, ())]

    def tabulate(self) -> pd.DataFrame:
        """Return the rows of SAMPLE_COLUMNS in the order of the plan."""
        order = self.owners[self.owners["num_steps"] > 0].sort_values(["place", "tenant"], kind="stable")
        if order.empty:
            return make_frame([], SAMPLE_COLUMNS)
        seconds: list[FloatArray] = []
        device_seconds: list[FloatArray] = []
        for row in order["row"].tolist():
            warmup, timed, events = (self._read(name, row) for name in STEP_SERIES)
            seconds += [warmup, timed]
            device_seconds += [np.full(len(warmup), np.nan), events if len(events) else np.full(len(timed), np.nan)]
        lengths = [len(steps) for steps in seconds]
        series = order.loc[order.index.repeat(2), ["cell_id", "repeat", "tenant"]]
        series = series.assign(kind=["warmup", "timed"] * len(order)).reset_index(drop=True)
        return (
            series.loc[series.index.repeat(lengths)]
            .assign(
                index=np.concatenate([np.arange(length) for length in lengths]),
                seconds=np.concatenate(seconds),
                device_seconds=np.concatenate(device_seconds),
            )
            .astype(dict(SAMPLE_COLUMNS))
            .reset_index(drop=True)
        )

    @cached_property
    def _rows(self) -> dict[Any, list[int]]:
        return self.owners.groupby("place", sort=False)["row"].agg(list).to_dict()

    def _read(self, name: str, row: int) -> FloatArray:
        values = self.series[name][row].values
        return np.empty(0) if values is None else values.to_numpy(zero_copy_only=False)
