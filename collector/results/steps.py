"""Read the step times of a run's counted attempts from the data set, on demand and in bounded memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bench.errors import UserError
from bench.store import KeyMissing
from collector.results.attempts import IntArray
from collector.results.dataset.columns import STEPS, make_schema
from collector.results.dataset.digests import DamagedPartError
from collector.results.dataset.parts import Part
from collector.results.frames import SAMPLE_COLUMNS, make_frame
from collector.results.tenancy import STEP_SERIES

FloatArray = npt.NDArray[np.float64]

# Step times that are in memory at once, 8 bytes each: 8 MB, less than the table of the results that they belong to.
MAX_STEPS_AT_ONCE = 1_000_000
# Rows of SAMPLE_COLUMNS that are in memory at once: with their cell's id they take 100 bytes each.
MAX_ROWS_AT_ONCE = 100_000
SERIES_IDENTITY = ("key", "object_version", "tenant")


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """The raw step times of the attempts that count, one series or two for each; in seconds.

    Of an attempt with tenants, the series of tenant 0 has the attempt's place; those of the others follow after all
    attempts.
    """

    documents: pa.StringArray
    """Of the counted results, in the order of the plan: key and version of the object and the tenant, as `name_series`
    has them."""
    tenants: Sequence[int]
    """Of each, which tenant it is of; 0 where there are no others."""
    owners: Sequence[int]
    """Of each, the place of its attempt."""
    cell_ids: pa.DictionaryArray
    repeats: Sequence[int]
    num_steps: IntArray
    """Of each, warm-up included; 0 where nothing was timed."""
    part_numbers: IntArray
    """Of each, which of `parts` holds it."""
    parts: Sequence[Part] = field(repr=False)

    def read_timed(self, groups: Sequence[Sequence[int]]) -> Iterator[list[FloatArray]]:
        """Yield the timed steps of each group of results (places in `documents`), a series for each result."""
        sizes = [int(self.num_steps[list(group)].sum()) for group in groups]
        for first, last in _split(sizes, MAX_STEPS_AT_ONCE):
            places = [place for group in groups[first:last] for place in group]
            series = dict(zip(places, self._read(places, ["step_seconds"]), strict=True))
            for group in groups[first:last]:
                yield [series[place][0] for place in group]

    def tabulate(self) -> Iterator[pd.DataFrame]:
        """Yield the rows of SAMPLE_COLUMNS in the order of the plan, piece by piece; the first piece is empty."""
        yield make_frame([], SAMPLE_COLUMNS)
        order = sorted(range(len(self.documents)), key=lambda place: (self.owners[place], self.tenants[place]))
        for first, last in _split(self.num_steps[order].tolist(), MAX_STEPS_AT_ONCE):
            places = [place for place in order[first:last] if self.num_steps[place]]
            series = list(self._read(places, STEP_SERIES))
            for begin, end in _split(self.num_steps[places].tolist(), MAX_ROWS_AT_ONCE):
                yield self._tabulate(places[begin:end], series[begin:end])

    def keep(self, places: Sequence[int]) -> "StepTimes":
        """Return the series of the attempts at these places, ascending: each then has its number among them."""
        numbers = {place: number for number, place in enumerate(places)}
        kept = [place for place, owner in enumerate(self.owners) if owner in numbers]
        return replace(
            self,
            documents=self.documents.take(pa.array(kept, type=pa.int64())),
            tenants=[self.tenants[place] for place in kept],
            owners=[numbers[self.owners[place]] for place in kept],
            cell_ids=self.cell_ids.take(pa.array(kept, type=pa.int64())),
            repeats=[self.repeats[place] for place in kept],
            num_steps=self.num_steps[kept],
            part_numbers=self.part_numbers[kept],
        )

    def find_tenants(self, place: int) -> list[int]:
        """Return the places of the series of all tenants of the attempt at a place, tenant 0 first."""
        return [place, *self._others.get(place, ())]

    @cached_property
    def _others(self) -> dict[int, list[int]]:
        """The places of the tenants but the first, by that of their attempt, in their order."""
        found: dict[int, list[int]] = {}
        for place, owner in enumerate(self.owners):
            if place != owner:
                found.setdefault(owner, []).append(place)
        return found

    @cached_property
    def _all_rows(self) -> tuple[pa.Table, IntArray]:
        """What `_load` returns of all results, where they fit into memory: they are asked for several times."""
        return self._load(range(len(self.documents)), STEP_SERIES)

    def _load(self, places: Sequence[int], columns: Sequence[str]) -> tuple[pa.Table, IntArray]:
        """Return a table with these columns of the results, and which row of it each of `places` has.

        The table's rows are in any order. A result without step times has row -1.
        """
        wanted = self.documents.take(pa.array(places, pa.int64()))
        numbers = self.part_numbers[list(places)]
        tables, names = [make_schema(STEPS).empty_table().select(columns)], [pa.array([], pa.string())]
        # A part whose results all failed has no file of step times.
        for number in np.unique(numbers[self.num_steps[list(places)] > 0]):
            rows = _read_part(self.parts[int(number)], columns)
            found = name_series(rows)
            # An object that was replaced has rows in other parts too.
            is_wanted = pc.is_in(found, value_set=wanted.filter(pa.array(numbers == number)))
            tables.append(rows.select(columns).filter(is_wanted))
            names += found.filter(is_wanted).chunks
            del rows, found, is_wanted
            pa.default_memory_pool().release_unused()
        indices = pc.index_in(wanted, value_set=pa.concat_arrays(names))
        return pa.concat_tables(tables), pc.fill_null(indices, -1).to_numpy()

    def _read(self, places: Sequence[int], columns: Sequence[str]) -> Iterator[tuple[FloatArray, ...]]:
        """Yield the series of these columns of each of the results."""
        if int(self.num_steps.sum()) <= MAX_STEPS_AT_ONCE:
            rows, indices = self._all_rows
            indices = indices[list(places)]
        else:
            rows, indices = self._load(places, columns)
        series = [[*_split_lists(rows[name]), np.empty(0)] for name in columns]  # the last one is that of -1
        for place, index in zip(places, indices.tolist(), strict=True):
            found = tuple(own[index] for own in series)
            self._check(place, columns, found)
            yield found

    def _check(self, place: int, columns: Sequence[str], found: Sequence[FloatArray]) -> None:
        """Raise UserError where a file of the data set has not the steps of a result that its other tables speak of."""
        lengths = {name: len(steps) for name, steps in zip(columns, found, strict=True)}
        number, least = lengths["step_seconds"] + lengths.get("warmup_step_seconds", 0), self.num_steps[place]
        if "warmup_step_seconds" not in lengths:
            least = min(1, least)
        if least <= number <= self.num_steps[place]:
            return
        part = self.parts[int(self.part_numbers[place])]
        raise UserError(
            f"the step times cannot be read: {part.key_of(STEPS)} has {number} of the {self.num_steps[place]} steps of "
            f"{self.documents[place].as_py().partition(chr(10))[0]}; `benchmatrix collect {part.run_id} --rebuild` "
            "makes them anew"
        )

    def _tabulate(self, places: Sequence[int], series: Sequence[tuple[FloatArray, ...]]) -> pd.DataFrame:
        """Return the rows of these results, whose step times (warm-up, timed, by the device) are `series`."""
        flat = [
            (place, kind, steps)
            for place, (warmup, timed, _) in zip(places, series, strict=True)
            for kind, steps in (("warmup", warmup), ("timed", timed))
        ]
        lengths = [len(steps) for *_, steps in flat]
        device = [
            found
            for warmup, timed, events in series
            for found in (np.full(len(warmup), np.nan), events if len(events) else np.full(len(timed), np.nan))
        ]
        owners = [place for place, *_ in flat]
        columns: dict[str, pd.Series[Any]] = {
            "cell_id": pd.Series(self._name_cells(owners), dtype="str").repeat(lengths),
            "repeat": pd.Series([self.repeats[place] for place in owners], dtype="int64").repeat(lengths),
            "tenant": pd.Series([self.tenants[place] for place in owners], dtype="int64").repeat(lengths),
            "kind": pd.Series([kind for _, kind, _ in flat], dtype="str").repeat(lengths),
            "index": pd.Series(np.concatenate([np.arange(length) for length in lengths]), dtype="int64"),
            "seconds": pd.Series(np.concatenate([steps for *_, steps in flat]), dtype="float64"),
            "device_seconds": pd.Series(np.concatenate(device), dtype="float64"),
        }
        return pd.DataFrame({name: columns[name].reset_index(drop=True) for name in SAMPLE_COLUMNS})

    def _name_cells(self, places: Sequence[int]) -> list[str]:
        found: list[str] = self.cell_ids.take(pa.array(places, pa.int64())).to_pylist()
        return found


def _split(sizes: Sequence[int], limit: int) -> Iterator[tuple[int, int]]:
    """Yield ranges whose sizes add up to at most `limit`, or that have one element."""
    first, total = 0, 0
    for index, size in enumerate(sizes):
        if total + size > limit and index > first:
            yield first, index
            first, total = index, 0
        total += size
    if first < len(sizes):
        yield first, len(sizes)


def name_documents(rows: pa.Table) -> pa.ChunkedArray:
    """Return what tells apart the objects that rows were made from: key and version."""
    return pc.binary_join_element_wise(rows["key"], rows["object_version"], "\n")


def name_series(rows: pa.Table) -> pa.ChunkedArray:
    """Return what tells apart the series of steps: the object that they were made from, and the tenant."""
    return pc.binary_join_element_wise(name_documents(rows), rows["tenant"].cast(pa.string()), "\n")


def _read_part(part: Part, columns: Sequence[str]) -> pa.Table:
    """Return these columns of the step times in a part, and those that name the series."""
    try:
        return part.read(STEPS, [*SERIES_IDENTITY, *columns])
    except (DamagedPartError, KeyMissing) as error:
        raise UserError(
            f"the step times cannot be read: {error}; `benchmatrix collect {part.run_id} --rebuild` makes them anew"
        ) from error


def _split_lists(column: pa.ChunkedArray) -> list[FloatArray]:
    """Return one array per row; an empty one where it is missing."""
    arrays: list[FloatArray] = []
    for chunk in column.chunks:
        values = chunk.values.to_numpy(zero_copy_only=False)
        offsets = chunk.offsets.to_numpy()
        arrays += [values[first:last] for first, last in zip(offsets[:-1], offsets[1:], strict=True)]
    return arrays
