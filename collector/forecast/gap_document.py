"""The document that `benchmatrix gap --json` prints; its JSON Schema by `benchmatrix schema gap`."""

from typing import Any, Literal

from bench.schema import Document
from collector.forecast.document import SeriesDescription, Span, describe_series, make_span
from collector.forecast.gap import Gap
from collector.forecast.gap_words import describe_gap


class GapYear(Document):
    """Demand over supply in one year."""

    year: int
    demand_over_supply: Span


class GapDocument(Document):
    """How many devices one model needs, by year."""

    gap_version: Literal[1] = 1
    supply: SeriesDescription
    demand: SeriesDescription
    demand_factor: float
    """What the demand's values are multiplied by to be in the supply's unit."""
    year: int
    level: float
    years: tuple[GapYear, ...]
    """From the first year that lies after both series to the one asked for."""
    refusal: str | None
    """Why there is no gap for the year asked for; None where there is one."""
    sentences: tuple[str, ...]
    """The same for people."""


def make_gap_document(gap: Gap) -> GapDocument:
    """Return the document of a gap."""
    years = tuple(
        GapYear(year=int(row["year"]), demand_over_supply=make_span(row["value"], row["lower"], row["upper"]))
        for row in gap.years.to_dict("records")
    )
    return GapDocument(
        supply=describe_series(gap.supply),
        demand=describe_series(gap.demand),
        demand_factor=gap.factor,
        year=gap.year,
        level=gap.supply.level,
        years=years,
        refusal=gap.refusal,
        sentences=tuple(describe_gap(gap)),
    )


def export_gap_schema() -> dict[str, Any]:
    """Return the JSON Schema of GapDocument."""
    schema = GapDocument.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
