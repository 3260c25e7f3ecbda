"""Hold one run: its results in tidy tables, and its raw step times."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bench.errors import UserError
from bench.schema import Environment, NodeFault, Run
from collector.results.frames import SAMPLE_COLUMNS, STEP_SERIES, STEPS, make_frame
from collector.results.hosts import HostProducts
from collector.results.stored_tables import DamagedTableError, RunTables, SkippedDocument, table_key


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
Series = tuple[FloatArray, FloatArray, FloatArray]
"""STEP_SERIES of one tenant: warm-up, timed, by the device; seconds."""

# Rows of SAMPLE_COLUMNS that are made at once: with their cell's id they take 100 bytes each.
MAX_ROWS_AT_ONCE = 100_000
SERIES_IDENTITY = ["key", "object_version", "tenant"]


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """The raw step times of the attempts that count, in seconds: a row of `owners` for each series."""

    owners: pd.DataFrame
    """SERIES_IDENTITY, cell_id, repeat, num_steps (warm-up included) and owner: the place of the attempt among those
    that count. First the series of all attempts, so that they have the attempts' places, then those of their further
    tenants."""
    tables: RunTables = field(repr=False)

    def read_timed(self, places: Iterable[int]) -> list[FloatArray]:
        """Return the timed steps of results, by their places in `owners`."""
        return [self._all[place][1] for place in places]

    def tabulate(self) -> Iterator[pd.DataFrame]:
        """Yield the rows of SAMPLE_COLUMNS in the order of the plan, piece by piece; the first piece is empty."""
        yield make_frame([], SAMPLE_COLUMNS)
        order = self.owners[self.owners["num_steps"] > 0].sort_values(["owner", "tenant"], kind="stable")
        pieces = order["num_steps"].cumsum() // MAX_ROWS_AT_ONCE
        for _, piece in order.groupby(pieces, sort=False):
            yield self._tabulate(piece)

    def read_tenants(self, place: int) -> list[FloatArray]:
        """Return the timed steps of all tenants of the attempt at a place, tenant 0 first."""
        return self.read_timed(self._places_by_owner[place])

    @cached_property
    def _places_by_owner(self) -> dict[int, list[int]]:
        return {int(owner): list(places) for owner, places in self.owners.groupby("owner").groups.items()}  # type: ignore[call-overload]

    @cached_property
    def _all(self) -> list[Series]:
        """The series of each row of `owners`."""
        try:
            rows = self.tables.read(STEPS)
        except DamagedTableError as error:
            raise self._explain(str(error)) from error
        wanted = pa.Table.from_pandas(self.owners[SERIES_IDENTITY], preserve_index=False)
        places = pc.index_in(_name_series(wanted), value_set=_name_series(rows))
        columns = [[*_split_lists(rows[name]), np.empty(0)] for name in STEP_SERIES]  # the last is of those without
        found = []
        for place, number, key in zip(
            pc.fill_null(places, -1).to_pylist(), self.owners["num_steps"], self.owners["key"], strict=True
        ):
            warmup, timed, device = (column[place] for column in columns)
            if len(warmup) + len(timed) != number:
                there = f"{table_key(STEPS, self.tables.run_id)} has {len(warmup) + len(timed)}"
                raise self._explain(f"{there} of the {number} steps of {key}")
            found.append((warmup, timed, device))
        return found

    def _explain(self, error: str) -> UserError:
        return UserError(
            f"the step times cannot be read: {error}; `benchmatrix report {self.tables.run_id} --rebuild` makes them "
            "anew"
        )

    def _tabulate(self, owners: pd.DataFrame) -> pd.DataFrame:
        rows: dict[str, list[Any]] = {name: [] for name in SAMPLE_COLUMNS}
        lengths = []
        for row in owners.itertuples():
            warmup, timed, device = self._all[int(row.Index)]  # type: ignore[arg-type]
            events = device if len(device) else np.full(len(timed), np.nan)
            for kind, steps, by_device in (("warmup", warmup, np.full(len(warmup), np.nan)), ("timed", timed, events)):
                lengths.append(len(steps))
                values = (row.cell_id, row.repeat, row.tenant, kind, np.arange(len(steps)), steps, by_device)
                for name, value in zip(SAMPLE_COLUMNS, values, strict=True):
                    rows[name].append(value)
        columns = {
            name: np.concatenate(values)
            if name in ("index", "seconds", "device_seconds")
            else pd.Series(values, dtype=SAMPLE_COLUMNS[name]).repeat(lengths).array
            for name, values in rows.items()
        }
        return pd.DataFrame(columns).astype(dict(SAMPLE_COLUMNS))


def find_steps(tables: RunTables, counted: pd.DataFrame, tenants: pd.DataFrame) -> StepTimes:
    """Return the series of the counted attempts (rows of attempts), and after them of their further tenants."""
    own = counted.assign(tenant=0, owner=np.arange(len(counted)))
    owners = pd.concat([own, tenants[tenants["tenant"] > 0]], ignore_index=True)
    numbers = owners[["num_warmup_steps_taken", "num_steps_taken"]].fillna(0).sum(axis=1).astype("int64")
    names = [*SERIES_IDENTITY, "owner", "cell_id", "repeat"]
    return StepTimes(owners=owners[names].assign(num_steps=numbers), tables=tables)


def _name_series(rows: pa.Table) -> pa.Array:
    """Return what tells apart the series of steps: the object that they were made from, and the tenant."""
    texts = [rows[name].cast(pa.string()) for name in SERIES_IDENTITY]
    return pc.binary_join_element_wise(*texts, "\n").combine_chunks()


def _split_lists(column: pa.ChunkedArray) -> list[FloatArray]:
    """Return one array per row; an empty one where it is missing."""
    arrays: list[FloatArray] = []
    for chunk in column.chunks:
        values = chunk.values.to_numpy(zero_copy_only=False)
        offsets = chunk.offsets.to_numpy()
        arrays += [values[first:last] for first, last in zip(offsets[:-1], offsets[1:], strict=True)]
    return arrays
