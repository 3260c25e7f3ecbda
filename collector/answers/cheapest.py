"""Find for each kind of work the cell of which 1,000 samples cost least, and which are not told from it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from collector.analysis import Analysis
from collector.answers.pairs import list_usable_pairs
from collector.comparisons import FRAMEWORKS, MODES, PRECISIONS
from collector.costs.document import CellCost, OfferCost
from collector.labels import describe_field, name_size
from collector.machines import SIDES
from collector.results.frames import Row, list_rows
from collector.results.intervals import read_estimate
from collector.statistics import Estimate, scale_estimate

SECONDS_PER_HOUR = 3600.0
THOUSAND = 1000.0
STARTUP_COLUMNS = ("import_seconds", "build_seconds", "first_step_seconds")
"""The parts of a process's start before its steps run at their speed."""
WORK_COLUMNS = ("model", "phase", "input_size", "num_classes", "data_dir")
"""What is equal in cells of one work, of which the cheapest is said: a smaller picture is no cheaper program."""
CellKey = tuple[str, str]
"""The id of a cell and of the environment that it ran in."""


@dataclass(frozen=True, kw_only=True)
class Priced:
    """What 1,000 samples of a cell cost that has an interval."""

    row: Row
    """Of `summarize_cells`."""
    cost: Estimate
    """Of 1,000 samples, in the currency of the prices."""
    cell: CellCost
    offer: OfferCost

    @property
    def key(self) -> CellKey:
        """The id of the cell, and of the environment that it ran in."""
        return str(self.row["cell_id"]), str(self.row["environment_id"])

    @property
    def startup_seconds(self) -> float:
        """How long import, build and first step took together, in seconds; NaN where one of them is not known."""
        return float(sum(self.row[name] for name in STARTUP_COLUMNS))


@dataclass(frozen=True, kw_only=True)
class Cheapest:
    """The cell of a work (WORK_COLUMNS) of which 1,000 samples cost least."""

    first: Priced
    tied: tuple[Priced, ...]
    """Others of the work that are not told from it, the cheapest first."""
    num_cells: int
    """How many cells of the work have a cost with an interval."""


@dataclass(frozen=True, kw_only=True)
class PricedWork:
    """The cheapest cell of each work, in the order of the plan, chosen among `num_costs` cells."""

    cheapest: tuple[Cheapest, ...]
    num_costs: int
    """How many costs were compared: intervals of the cheapest have to hold together with all of these."""

    @cached_property
    def works(self) -> list[str]:
        """The names of these works: model and phase, and in brackets what tells one from others of both."""
        return _name_works([one.first.row for one in self.cheapest])


def list_cheapest(analysis: Analysis) -> PricedWork:
    """Return the cheapest cell of each work; none without prices."""
    priced = [_price(*one) for one in _list_priced(analysis)]
    works: dict[tuple[str, ...], list[Priced]] = {}
    for one in priced:
        works.setdefault(_identify_work(one.row), []).append(one)
    verdicts = _collect_verdicts(analysis)
    cheapest = tuple(_find_cheapest(cells, verdicts, len(priced)) for cells in works.values())
    return PricedWork(cheapest=cheapest, num_costs=len(priced))


def _collect_verdicts(analysis: Analysis) -> dict[frozenset[CellKey], bool]:
    """Return whether the times of two cells on one kind of machine differ, of the pairs that a table compares."""
    return {
        frozenset(
            (str(pair.row[f"cell_id_{side}"]), str(pair.row[f"environment_id_{side}"])) for side in SIDES
        ): pair.judged.is_different
        for comparison in (FRAMEWORKS, MODES, PRECISIONS)
        for pair in list_usable_pairs(analysis.comparisons[comparison.name], comparison)
    }


def _find_cheapest(cells: Sequence[Priced], verdicts: Mapping[frozenset[CellKey], bool], number: int) -> Cheapest:
    """Return the cheapest of the cells of a work, which are among `number` that have a cost.

    A cell at the same price an hour of which a table says how its time compares is told from the cheapest by that
    verdict: one pair has one verdict. Any other is, where its interval begins above the cheapest one's end.
    """
    first, *others = sorted(cells, key=lambda one: one.cost.center)

    def is_told(other: Priced) -> bool:
        if other.offer.price_per_hour == first.offer.price_per_hour:
            verdict = verdicts.get(frozenset((first.key, other.key)))
            if verdict is not None:
                return verdict
        own, others_own = (one.cost.find_joint_interval(number) for one in (first, other))
        return own is not None and others_own is not None and own[1] < others_own[0]

    return Cheapest(first=first, tied=tuple(one for one in others if not is_told(one)), num_cells=len(cells))


def _price(row: Row, cell: CellCost, offer: OfferCost) -> Priced:
    hours = THOUSAND / row["batch_size"] / SECONDS_PER_HOUR
    cost = scale_estimate(read_estimate(row), hours * offer.price_per_hour)
    return Priced(row=row, cost=cost, cell=cell, offer=offer)


def _list_priced(analysis: Analysis) -> list[tuple[Row, CellCost, OfferCost]]:
    """Return each sound row of the summary with an interval and a price, with its cheapest offer.

    A cell that ran in several environments has a row, and a label, for each.
    """
    cells = () if analysis.costs is None else analysis.costs.cells
    offers = {(cell.cell_id, cell.label): (cell, cell.offers[0]) for cell in cells if cell.offers}
    summary = analysis.summary
    rows = list_rows(summary[(summary["num_sound"] > 0) & summary["log_standard_error"].notna()])
    keys = [(row["cell_id"], row["label"]) for row in rows]
    return [(row, *offers[key]) for row, key in zip(rows, keys, strict=True) if key in offers]


def _identify_work(row: Row) -> tuple[str, ...]:
    return tuple("" if pd.isna(row[name]) else str(row[name]) for name in WORK_COLUMNS)


def _name_works(rows: Sequence[Row]) -> list[str]:
    """Return the name of each work: model and phase, and in brackets what tells it from others of these."""
    values: dict[str, dict[str, set[str]]] = {}
    for row in rows:
        alike = values.setdefault(_name_short(row), {name: set() for name in WORK_COLUMNS})
        for name, value in zip(WORK_COLUMNS, _identify_work(row), strict=True):
            alike[name].add(value)
    names = []
    for row in rows:
        name = _name_short(row)
        own = list(_list_differences(row, values[name]))
        names.append(f"{name} ({', '.join(own)})" if own else name)
    return names


def _name_short(row: Row) -> str:
    return f"{row['model']} {row['phase']}"


def _list_differences(row: Row, values: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield what tells a work from others: `32 px`, `10 classes`.

    `values`: of each of WORK_COLUMNS, those that works of the same model and phase have.
    """
    if len(values["input_size"]) > 1:
        yield name_size(row)
    for name in ("num_classes", "data_dir"):
        if len(values[name]) > 1:
            yield describe_field(name, None if pd.isna(row[name]) else row[name])
