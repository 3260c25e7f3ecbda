"""What the measured work costs: a GPU against its host's CPU at the prices of a table, and the span of all cells."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Figures, Said
from collector.answers.pairs import list_usable_pairs
from collector.answers.ratios import Family, judge_ratios, quote_jointly, say_ratios
from collector.comparisons import DEVICES
from collector.costs.document import CellCost, CostDocument, OfferCost, describe_place
from collector.results.frames import list_rows
from collector.results.intervals import read_estimate
from collector.statistics import scale_estimate
from collector.units import Unit, format_significant

ANCHOR = name_anchor("Cost, energy and CO2 of 1,000 samples")
SECONDS_PER_HOUR = 3600.0
THOUSAND = 1000.0
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


def find_cost_span(analysis: Analysis) -> list[Said]:
    """Return the least and the most that 1,000 samples of a priced cell cost."""
    offers = _index_offers(analysis.costs)
    summary = analysis.summary
    rows = list_rows(summary[(summary["num_sound"] > 0) & summary["log_standard_error"].notna()])
    priced = [(row, *offers[row["cell_id"]]) for row in rows if row["cell_id"] in offers]
    if not priced or analysis.costs is None:
        return []
    unit = Unit(label=analysis.costs.currency, size=1.0)
    costs = [
        (
            scale_estimate(read_estimate(row), THOUSAND / row["batch_size"] / SECONDS_PER_HOUR * offer.price_per_hour),
            row,
        )
        for row, _, offer in priced
    ]
    ends = [choose(costs, key=lambda cost: cost[0].center) for choose in (min, max)]
    quoted = [f"{quote_jointly(cost, len(costs), unit)} {unit.label} for {row['label']}" for cost, row in ends]
    text = quoted[0] if len(costs) == 1 else f"from {quoted[0]} to {quoted[1]}, of {len(costs):,} priced cells"
    places = _name_places(((cell, offer) for _, cell, offer in priced), analysis)
    figures = Figures(name="costs", number=len(costs), are_tested=False, are_ratios=False)
    return [Said(text=f"1,000 samples cost {text}, without start-up. {places}", anchor=ANCHOR, figures=figures)]


def _index_offers(costs: CostDocument | None) -> dict[str, tuple[CellCost, OfferCost]]:
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
            f"({offer.price_date})"
            for cell, offer in priced
        )
    )
    return f"Prices: {_join(texts)}."


def _join(texts: Sequence[str]) -> str:
    more = len(texts) - MAX_PLACES
    return "; ".join([*texts[:MAX_PLACES], *([f"{more} more"] if more > 0 else [])])
