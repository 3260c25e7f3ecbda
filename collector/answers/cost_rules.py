"""What the measured work costs at the prices of a table: a GPU against its host's CPU, and the cheapest cells."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Figures, Said
from collector.answers.pairs import list_usable_pairs
from collector.answers.ratios import Family, judge_ratios, quote_jointly, say_ratios
from collector.comparisons import DEVICES
from collector.costs.document import CellCost, CostDocument, OfferCost, describe_place
from collector.facts import list_some
from collector.labels import DEVICE_NAMES
from collector.prices.table import Purchase
from collector.results.frames import Row, list_rows
from collector.results.intervals import read_estimate
from collector.statistics import Estimate, scale_estimate
from collector.tables.columns import count_column, interval_column, number_column, text_column
from collector.tables.comparisons import INTERVAL_TITLE
from collector.tables.table import Table, make_table
from collector.units import SECOND, Unit, format_number, format_significant

ANCHOR = name_anchor("Cost, energy and CO2 of 1,000 samples")
CHEAPEST_CAPTION = "The cheapest for each model and phase"
SECONDS_PER_HOUR = 3600.0
THOUSAND = 1000.0
STARTUP_COLUMNS = ("import_seconds", "build_seconds", "first_step_seconds")
"""The parts of a process's start before its steps run at their speed."""
STARTUP = ", start-up "
PURCHASES: Mapping[Purchase, str] = {"on-demand": "on demand", "spot": "spot"}
MAX_WORKS = 4
"""Kinds of work (model, phase) of which the cheapest cell is said."""
MAX_PLACES = 3
"""Machines that a sentence names."""


def find_device_costs(analysis: Analysis) -> list[Said]:
    """Return in how many comparisons the CPU costs more than the GPU for the same samples, and by how much.

    A price is a number without an error, so the ratio of costs is the speedup times the ratio of the prices.
    """
    offers = _index_offers(analysis.costs)
    priced = [
        (pair, offers[sides["subject"]], offers[sides["reference"]])
        for pair in list_usable_pairs(analysis.comparisons[DEVICES.name], DEVICES)
        for sides in [{side: pair.row[f"cell_id_{side}"] for side in ("subject", "reference")}]
        if all(cell_id in offers for cell_id in sides.values())
    ]
    estimates = [
        scale_estimate(pair.judged.ratio, cpu.price_per_hour / gpu.price_per_hour)
        for pair, (_, gpu), (_, cpu) in priced
    ]
    different = judge_ratios(estimates)
    if not any(different):
        return []
    family = Family(
        name="costs",
        measure="CPU over GPU cost ratio",
        above="the GPU is cheaper",
        below="the CPU is cheaper",
        size=len(priced),
    )
    judged = [
        replace(pair.judged, ratio=estimate, is_different=is_different)
        for (pair, *_), estimate, is_different in zip(priced, estimates, different, strict=True)
    ]
    said = say_ratios("Cost of the same samples", judged, family, anchor=ANCHOR)
    places = _name_places((place for _, *sides in priced for place in sides), analysis)
    return [replace(said, text=f"{said.text} {places}")]


@dataclass(frozen=True, kw_only=True)
class Cheapest:
    """The cell of a work (model, phase) of which 1,000 samples cost least, of those that have an interval."""

    row: Row
    """Of `summarize_cells`."""
    cost: Estimate
    """Of 1,000 samples, in the currency of the prices."""
    cell: CellCost
    offer: OfferCost

    @property
    def work(self) -> str:
        """What is done: `conv6 infer`."""
        return f"{self.row['model']} {self.row['phase']}"

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


def list_cheapest(analysis: Analysis) -> PricedWork:
    """Return the cheapest cell of each work; none without prices."""
    offers = _index_offers(analysis.costs)
    summary = analysis.summary
    rows = list_rows(summary[(summary["num_sound"] > 0) & summary["log_standard_error"].notna()])
    priced = [_price(row, *offers[row["cell_id"]]) for row in rows if row["cell_id"] in offers]
    cheapest: dict[str, Cheapest] = {}
    for one in priced:
        if one.work not in cheapest or one.cost.center < cheapest[one.work].cost.center:
            cheapest[one.work] = one
    return PricedWork(cheapest=tuple(cheapest.values()), num_costs=len(priced))


def _price(row: Row, cell: CellCost, offer: OfferCost) -> Cheapest:
    hours = THOUSAND / row["batch_size"] / SECONDS_PER_HOUR
    cost = scale_estimate(read_estimate(row), hours * offer.price_per_hour)
    return Cheapest(row=row, cost=cost, cell=cell, offer=offer)


def find_cheapest(analysis: Analysis) -> list[Said]:
    """Return for each model and phase the program and batch at which 1,000 samples cost least."""
    priced = analysis.derive(list_cheapest)
    if not priced.cheapest or analysis.costs is None:
        return []
    number, unit = priced.num_costs, Unit(label=analysis.costs.currency, size=1.0)
    named = list_some([_say_cheapest(one, number, unit) for one in priced.cheapest], MAX_WORKS)
    together = f"The intervals hold for all {number:,} costs together; in the table each alone. "
    has_startup = any(STARTUP in one for one in named)
    text = (
        f"{unit.label} for 1,000 samples, the cheapest of each work, without start-up"
        f"{' (import, build, first step)' if has_startup else ''}: {'; '.join(named)}. "
        f"{together if number > 1 else ''}"
        f"{_name_places(((one.cell, one.offer) for one in priced.cheapest), analysis)}"
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
    rows = pd.DataFrame([_describe_cheapest(one, priced.num_costs, analysis) for one in priced.cheapest])
    return make_table(CHEAPEST_CAPTION, columns, rows).lift_alike()


def _describe_cheapest(one: Cheapest, number: int, analysis: Analysis) -> Row:
    low, high = one.cost.find_joint_interval(number) or (None, None)
    names = ("cell_id", "variant", "precision", "batch_size")
    return {name: one.row[name] for name in names} | {
        "work": one.work,
        "device": DEVICE_NAMES[one.row["device"]],
        "cost": one.cost.center,
        "cost_low": low,
        "cost_high": high,
        "startup_seconds": one.startup_seconds,
        "place": _name_place(one.cell, one.offer, analysis),
    }


def _say_cheapest(one: Cheapest, number: int, unit: Unit) -> str:
    """Return `conv6 infer 0.000836 (0.000822 to 0.000851): GPU, batch 64, fp32, TensorFlow graph, start-up 5.61 s`."""
    row, seconds = one.row, one.startup_seconds
    startup = "" if math.isnan(seconds) else f"{STARTUP}{format_number(seconds, SECOND)} s"
    program = f"{DEVICE_NAMES[row['device']]}, batch {row['batch_size']}, {row['precision']}, {row['variant']}"
    return f"{one.work} {quote_jointly(one.cost, number, unit)}: {program}{startup}"


def _index_offers(costs: CostDocument | None) -> dict[str, tuple[CellCost, OfferCost]]:
    """Return the cheapest offer of each cell that has one; a cell with several environments is left out."""
    cells = () if costs is None else costs.cells
    numbers = Counter(cell.cell_id for cell in cells)
    return {cell.cell_id: (cell, cell.offers[0]) for cell in cells if cell.offers and numbers[cell.cell_id] == 1}


def _name_places(priced: Iterable[tuple[CellCost, OfferCost]], analysis: Analysis) -> str:
    """Return the machines that were priced, each with its price and the day of it."""
    texts = list(dict.fromkeys(_name_place(cell, offer, analysis) for cell, offer in priced))
    return f"Prices: {'; '.join(list_some(texts, MAX_PLACES))}."


def _name_place(cell: CellCost, offer: OfferCost, analysis: Analysis) -> str:
    """Return `EKS us-east-1 g4dn.xlarge at 0.526 USD an hour (on demand, 2026-07-20)`."""
    currency = "" if analysis.costs is None else f" {analysis.costs.currency}"
    price = f"{format_significant(offer.price_per_hour)}{currency} an hour"
    return f"{describe_place(cell, offer)} at {price} ({', '.join(_list_terms(offer))})"


def _list_terms(offer: OfferCost) -> list[str]:
    """Return how it is bought, what the whole machine costs where a part is priced, and the day of the price."""
    whole = f"the whole machine {format_significant(offer.machine_price_per_hour)}"
    is_part = offer.price_per_hour != offer.machine_price_per_hour
    return [PURCHASES[offer.purchase], *([whole] if is_part else []), str(offer.price_date)]
