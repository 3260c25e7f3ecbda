"""What the measured work costs at the prices of a table: a GPU against its host's CPU, and the cheapest cells."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from collector.analysis import MAX_PRICED_CELLS, Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Figures, Said
from collector.answers.pairs import list_usable_pairs
from collector.answers.ratios import Family, judge_ratios, quote_jointly, say_ratios
from collector.comparisons import DEVICES
from collector.costs.document import CellCost, CostDocument, OfferCost, describe_place
from collector.facts import list_some
from collector.labels import DEVICE_NAMES, describe_field, name_size
from collector.prices.table import Purchase
from collector.results.frames import Row, list_rows
from collector.results.intervals import read_estimate
from collector.statistics import Estimate, scale_estimate
from collector.units import SECOND, Unit, format_number, format_significant

ANCHOR = name_anchor("Cost, energy and CO2 of 1,000 samples")
SECONDS_PER_HOUR = 3600.0
THOUSAND = 1000.0
STARTUP_COLUMNS = ("import_seconds", "build_seconds", "first_step_seconds")
"""The parts of a process's start before its steps run at their speed."""
STARTUP = ", start-up "
WORK_COLUMNS = ("model", "phase", "input_size", "num_classes", "data_dir")
"""What is equal in cells of one work, of which the cheapest is said: a smaller picture is no cheaper program."""
PURCHASES: Mapping[Purchase, str] = {"on-demand": "on demand", "spot": "spot"}
MAX_WORKS = 4
"""Kinds of work of which the cheapest cell is said."""
MAX_PLACES = 3
"""Machines that a sentence names."""


def find_device_costs(analysis: Analysis) -> list[Said]:
    """Return in how many comparisons the CPU costs more than the GPU for the same samples, and by how much.

    A price is a number without an error, so the ratio of costs is the speedup times the ratio of the prices.
    """
    offers = _index_lone_offers(analysis.costs)
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


def find_cheapest(analysis: Analysis) -> list[Said]:
    """Return for each kind of work the program and batch at which 1,000 samples cost least."""
    priced = _list_priced(analysis)
    if not priced or analysis.costs is None:
        return []
    costs = [
        (
            scale_estimate(read_estimate(row), THOUSAND / row["batch_size"] / SECONDS_PER_HOUR * offer.price_per_hour),
            row,
        )
        for row, _, offer in priced
    ]
    cheapest: dict[tuple[str, ...], tuple[Estimate, Row]] = {}
    for cost, row in costs:
        work = _identify_work(row)
        if work not in cheapest or cost.center < cheapest[work][0].center:
            cheapest[work] = (cost, row)
    unit = Unit(label=analysis.costs.currency, size=1.0)
    works = _name_works([row for _, row in cheapest.values()])
    said = [
        _say_cheapest(work, cost, row, len(costs), unit)
        for work, (cost, row) in zip(works, cheapest.values(), strict=True)
    ]
    named = list_some(said, MAX_WORKS)
    together = f"The intervals hold for all {len(costs):,} costs together; in the table each alone. "
    has_startup = any(STARTUP in one for one in named)
    text = (
        f"{unit.label} for 1,000 samples, the cheapest of each work{_describe_priced(len(analysis.summary))}, "
        f"without start-up{' (import, build, first step)' if has_startup else ''}: {'; '.join(named)}. "
        f"{together if len(costs) > 1 else ''}"
        f"{_name_places(((cell, offer) for _, cell, offer in priced), analysis)}"
    )
    figures = Figures(name="costs", number=len(costs), are_tested=False, are_ratios=False)
    return [Said(text=text, anchor=ANCHOR, figures=figures)]


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
    short = [f"{row['model']} {row['phase']}" for row in rows]
    names = []
    for name, row in zip(short, rows, strict=True):
        own = list(_list_differences(row, [other for other, like in zip(rows, short, strict=True) if like == name]))
        names.append(f"{name} ({', '.join(own)})" if own else name)
    return names


def _list_differences(row: Row, alike: Sequence[Row]) -> Iterator[str]:
    """Yield what a work has of its own among those of the same model and phase: `32 px`, `10 classes`."""
    values = {name: {_identify_work(other)[WORK_COLUMNS.index(name)] for other in alike} for name in WORK_COLUMNS}
    if len(values["input_size"]) > 1:
        yield name_size(row)
    for name in ("num_classes", "data_dir"):
        if len(values[name]) > 1:
            yield describe_field(name, None if pd.isna(row[name]) else row[name])


def _say_cheapest(work: str, cost: Estimate, row: Row, number: int, unit: Unit) -> str:
    """Return `conv6 infer 0.000836 (0.000822 to 0.000851): GPU, batch 64, fp32, TensorFlow graph, start-up 5.61 s`."""
    parts = [row[name] for name in STARTUP_COLUMNS]
    startup = "" if any(map(pd.isna, parts)) else f"{STARTUP}{format_number(float(sum(parts)), SECOND)} s"
    program = f"{DEVICE_NAMES[row['device']]}, batch {row['batch_size']}, {row['precision']}, {row['variant']}"
    return f"{work} {quote_jointly(cost, number, unit)}: {program}{startup}"


def _index_lone_offers(costs: CostDocument | None) -> dict[str, tuple[CellCost, OfferCost]]:
    """Return the cheapest offer of each cell that has one; a cell with several environments is left out."""
    cells = () if costs is None else costs.cells
    numbers = Counter(cell.cell_id for cell in cells)
    return {cell.cell_id: (cell, cell.offers[0]) for cell in cells if cell.offers and numbers[cell.cell_id] == 1}


def _name_places(priced: Iterable[tuple[CellCost, OfferCost]], analysis: Analysis) -> str:
    """Return the machines that were priced, each with its price and the day of it."""
    currency = "" if analysis.costs is None else f" {analysis.costs.currency}"
    texts = list(
        dict.fromkeys(
            f"{describe_place(cell, offer)} at {format_significant(offer.price_per_hour)}{currency} an hour "
            f"({', '.join(_list_terms(offer))})"
            for cell, offer in priced
        )
    )
    return f"Prices: {'; '.join(list_some(texts, MAX_PLACES))}."


def _list_terms(offer: OfferCost) -> list[str]:
    """Return how it is bought, what the whole machine costs where a part is priced, and the day of the price."""
    whole = f"the whole machine {format_significant(offer.machine_price_per_hour)}"
    is_part = offer.price_per_hour != offer.machine_price_per_hour
    return [PURCHASES[offer.purchase], *([whole] if is_part else []), str(offer.price_date)]
