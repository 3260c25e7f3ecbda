"""Say for each kind of work which cell costs least for 1,000 samples: as a table of the report, and in sentences."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from collector.analysis import MAX_PRICED_CELLS, Analysis
from collector.answers.answer import Figures, Said
from collector.answers.cost_rules import ANCHOR, name_place, name_places
from collector.answers.ratios import quote_jointly
from collector.costs.document import CellCost, OfferCost
from collector.facts import list_some
from collector.labels import DEVICE_NAMES, describe_field, name_size
from collector.results.frames import Row, list_rows
from collector.results.intervals import read_estimate
from collector.statistics import Estimate, scale_estimate
from collector.tables.columns import count_column, interval_column, number_column, text_column
from collector.tables.comparisons import INTERVAL_TITLE
from collector.tables.table import Table, make_table
from collector.units import SECOND, Unit, format_number

CAPTION = "The cheapest for each model and phase"
SECONDS_PER_HOUR = 3600.0
THOUSAND = 1000.0
STARTUP_COLUMNS = ("import_seconds", "build_seconds", "first_step_seconds")
"""The parts of a process's start before its steps run at their speed."""
STARTUP = ", start-up "
WORK_COLUMNS = ("model", "phase", "input_size", "num_classes", "data_dir")
"""What is equal in cells of one work, of which the cheapest is said: a smaller picture is no cheaper program."""
MAX_WORKS = 4
"""Kinds of work of which a sentence says the cheapest cell."""


@dataclass(frozen=True, kw_only=True)
class Cheapest:
    """The cell of a work (WORK_COLUMNS) of which 1,000 samples cost least, of those that have an interval."""

    row: Row
    """Of `summarize_cells`."""
    cost: Estimate
    """Of 1,000 samples, in the currency of the prices."""
    cell: CellCost
    offer: OfferCost

    @property
    def startup_seconds(self) -> float:
        """How long import, build and first step took together, in seconds; NaN where one of them is not known."""
        return float(sum(self.row[name] for name in STARTUP_COLUMNS))


@dataclass(frozen=True, kw_only=True)
class PricedWork:
    """The cheapest cell of each work, in the order of the plan, chosen among `num_costs` cells."""

    cheapest: tuple[Cheapest, ...]
    num_costs: int
    """How many costs were compared: intervals of the cheapest have to hold together with all of these."""

    @cached_property
    def works(self) -> list[str]:
        """The names of these works: model and phase, and in brackets what tells one from others of both."""
        return _name_works([one.row for one in self.cheapest])


def list_cheapest(analysis: Analysis) -> PricedWork:
    """Return the cheapest cell of each work; none without prices."""
    priced = [_price(*one) for one in _list_priced(analysis)]
    cheapest: dict[tuple[str, ...], Cheapest] = {}
    for one in priced:
        work = _identify_work(one.row)
        if work not in cheapest or one.cost.center < cheapest[work].cost.center:
            cheapest[work] = one
    return PricedWork(cheapest=tuple(cheapest.values()), num_costs=len(priced))


def _price(row: Row, cell: CellCost, offer: OfferCost) -> Cheapest:
    hours = THOUSAND / row["batch_size"] / SECONDS_PER_HOUR
    cost = scale_estimate(read_estimate(row), hours * offer.price_per_hour)
    return Cheapest(row=row, cost=cost, cell=cell, offer=offer)


def find_cheapest(analysis: Analysis) -> list[Said]:
    """Return for each kind of work the program and batch at which 1,000 samples cost least."""
    priced = analysis.derive(list_cheapest)
    if not priced.cheapest or analysis.costs is None:
        return []
    number, unit = priced.num_costs, Unit(label=analysis.costs.currency, size=1.0)
    said = [_say_cheapest(work, one, number, unit) for work, one in zip(priced.works, priced.cheapest, strict=True)]
    named = list_some(said, MAX_WORKS)
    together = f"The intervals hold for all {number:,} costs together; in the table each alone. "
    has_startup = any(STARTUP in one for one in named)
    text = (
        f"{unit.label} for 1,000 samples, the cheapest of each work{_describe_priced(len(analysis.summary))}, "
        f"without start-up{' (import, build, first step)' if has_startup else ''}: {'; '.join(named)}. "
        f"{together if number > 1 else ''}"
        f"{name_places(((one.cell, one.offer) for one in priced.cheapest), analysis)}"
    )
    figures = Figures(name="costs", number=number, are_tested=False, are_ratios=False)
    return [Said(text=text, anchor=ANCHOR, figures=figures)]


def make_cheapest_table(analysis: Analysis) -> Table | None:
    """Return a row for each work with its cheapest cell, as the sentences of `find_cheapest`; None without any."""
    priced = analysis.derive(list_cheapest)
    if not priced.cheapest or analysis.costs is None:
        return None
    unit = Unit(label=analysis.costs.currency, size=1.0)
    columns = [
        text_column("work", "work"),
        replace(text_column("cheapest", "variant"), is_finding=True),
        text_column("on", "device"),
        text_column("precision", "precision"),
        replace(count_column("batch", "batch_size"), is_finding=True),
        number_column("1,000 samples", "cost", unit),
        interval_column(INTERVAL_TITLE, "cost_low", "cost_high", unit),
        number_column("start-up, not in it", "startup_seconds", SECOND),
        text_column("at", "place"),
    ]
    rows = [_describe_cheapest(one, priced.num_costs, analysis) for one in priced.cheapest]
    frame = pd.DataFrame(rows).assign(work=priced.works)
    caption = f"{CAPTION}{_describe_priced(len(analysis.summary))}"
    return make_table(caption, columns, frame).lift_alike()


def _describe_cheapest(one: Cheapest, number: int, analysis: Analysis) -> Row:
    low, high = one.cost.find_joint_interval(number) or (None, None)
    names = ("cell_id", "variant", "precision", "batch_size")
    return {name: one.row[name] for name in names} | {
        "device": DEVICE_NAMES[one.row["device"]],
        "cost": one.cost.center,
        "cost_low": low,
        "cost_high": high,
        "startup_seconds": one.startup_seconds,
        "place": name_place(one.cell, one.offer, analysis),
    }


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


def _describe_priced(num_cells: int) -> str:
    """Return which cells were priced, where that is not all of them."""
    return f" among the first {MAX_PRICED_CELLS:,} of {num_cells:,} cells" if num_cells > MAX_PRICED_CELLS else ""


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


def _say_cheapest(work: str, one: Cheapest, number: int, unit: Unit) -> str:
    """Return `conv6 infer 0.000836 (0.000822 to 0.000851): GPU, batch 64, fp32, TensorFlow graph, start-up 5.61 s`."""
    row, seconds = one.row, one.startup_seconds
    startup = "" if math.isnan(seconds) else f"{STARTUP}{format_number(seconds, SECOND)} s"
    program = f"{DEVICE_NAMES[row['device']]}, batch {row['batch_size']}, {row['precision']}, {row['variant']}"
    return f"{work} {quote_jointly(one.cost, number, unit)}: {program}{startup}"
