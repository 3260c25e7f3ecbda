"""What the same samples cost on a GPU and on its host's CPU, at the prices of a table, and how prices are named."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Said
from collector.answers.pairs import list_usable_pairs
from collector.answers.ratios import Family, judge_ratios, say_ratios
from collector.comparisons import DEVICES
from collector.costs.document import CellCost, CostDocument, OfferCost, describe_place
from collector.facts import list_some
from collector.prices.table import Purchase
from collector.statistics import scale_estimate
from collector.units import format_significant

ANCHOR = name_anchor("Cost, energy and CO2 of 1,000 samples")
PURCHASES: Mapping[Purchase, str] = {"on-demand": "on demand", "spot": "spot"}
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
    places = name_places((place for _, *sides in priced for place in sides), analysis)
    return [replace(said, text=f"{said.text} {places}")]


def _index_lone_offers(costs: CostDocument | None) -> dict[str, tuple[CellCost, OfferCost]]:
    """Return the cheapest offer of each cell that has one; a cell with several environments is left out."""
    cells = () if costs is None else costs.cells
    numbers = Counter(cell.cell_id for cell in cells)
    return {cell.cell_id: (cell, cell.offers[0]) for cell in cells if cell.offers and numbers[cell.cell_id] == 1}


def name_places(priced: Iterable[tuple[CellCost, OfferCost]], analysis: Analysis) -> str:
    """Return the machines that were priced, each with its price and the day of it."""
    texts = list(dict.fromkeys(name_place(cell, offer, analysis) for cell, offer in priced))
    return f"Prices: {'; '.join(list_some(texts, MAX_PLACES))}."


def name_place(cell: CellCost, offer: OfferCost, analysis: Analysis) -> str:
    """Return `EKS us-east-1 g4dn.xlarge at 0.526 USD an hour (on demand, 2026-07-20)`."""
    currency = "" if analysis.costs is None else f" {analysis.costs.currency}"
    price = f"{format_significant(offer.price_per_hour)}{currency} an hour"
    return f"{describe_place(cell, offer)} at {price} ({', '.join(_list_terms(offer))})"


def _list_terms(offer: OfferCost) -> list[str]:
    """Return how it is bought, what the whole machine costs where a part is priced, and the day of the price."""
    whole = f"the whole machine {format_significant(offer.machine_price_per_hour)}"
    is_part = offer.price_per_hour != offer.machine_price_per_hour
    return [PURCHASES[offer.purchase], *([whole] if is_part else []), str(offer.price_date)]
