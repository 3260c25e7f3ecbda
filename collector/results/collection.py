"""Hold one run: its results in tidy tables, and its raw step times."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from bench.schema import Environment, NodeFault, Run
from collector.results.frames import SAMPLE_COLUMNS, STEP_SERIES, make_frame
from collector.results.stored_tables import SkippedDocument


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
        """One row per step of the counted attempts, columns of `collector.results.frames.SAMPLE_COLUMNS`.

        All of them are in memory then: `steps` has them group by group.
        """
        return pd.concat(self.steps.tabulate(), ignore_index=True)


FloatArray = npt.NDArray[np.float64]

# Rows of SAMPLE_COLUMNS that are made at once: with their cell's id they take 100 bytes each.
MAX_ROWS_AT_ONCE = 100_000


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

    def tabulate(self) -> Iterator[pd.DataFrame]:
        """Yield the rows of SAMPLE_COLUMNS in the order of the plan, piece by piece; the first piece is empty."""
        yield make_frame([], SAMPLE_COLUMNS)
        order = self.owners[self.owners["num_steps"] > 0].sort_values(["place", "tenant"], kind="stable")
        pieces = order["num_steps"].cumsum() // MAX_ROWS_AT_ONCE
        for _, piece in order.groupby(pieces, sort=False):
            yield self._tabulate(piece)

    @cached_property
    def _rows(self) -> dict[Any, list[int]]:
        return self.owners.groupby("place", sort=False)["row"].agg(list).to_dict()

    def _read(self, name: str, row: int) -> FloatArray:
        values = self.series[name][row].values
        return np.empty(0) if values is None else values.to_numpy(zero_copy_only=False)

    def _tabulate(self, owners: pd.DataFrame) -> pd.DataFrame:
        rows: dict[str, list[Any]] = {name: [] for name in SAMPLE_COLUMNS}
        lengths = []
        for owner in owners.itertuples():
            warmup, timed, device = (self._read(name, int(owner.row)) for name in STEP_SERIES)  # type: ignore[arg-type]
            events = device if len(device) else np.full(len(timed), np.nan)
            for kind, steps, by_device in (("warmup", warmup, np.full(len(warmup), np.nan)), ("timed", timed, events)):
                lengths.append(len(steps))
                values = (owner.cell_id, owner.repeat, owner.tenant, kind, np.arange(len(steps)), steps, by_device)
                for name, value in zip(SAMPLE_COLUMNS, values, strict=True):
                    rows[name].append(value)
        columns = {
            name: np.concatenate(values)
            if name in ("index", "seconds", "device_seconds")
            else pd.Series(values, dtype=SAMPLE_COLUMNS[name]).repeat(lengths).array
            for name, values in rows.items()
        }
        return pd.DataFrame(columns).astype(dict(SAMPLE_COLUMNS))
