"""Show what cells cost: tables, sentences and Markdown."""

from collections.abc import Callable, Iterator, Sequence

import pandas as pd

from collector.costs.document import CellCost, CostDocument, Figure, OfferCost, describe_place
from collector.files import escape_markdown
from collector.tables.table import CELL, Column, Table, interval_column, make_table, number_column, text_column
from collector.tables.table import write_markdown as write_tables
from collector.units import JOULE, Unit

Row = dict[str, object]

GRAM = Unit(label="g", size=1.0)
KILOGRAM = Unit(label="kg", size=1e3)
HOUR = Unit(label="h", size=3600.0)
KILOWATT_HOUR = Unit(label="kWh", size=3.6e6)
MACHINE = text_column("cheapest machine", "place", is_optional=True)
ENERGY_SOURCE = text_column("energy of", "energy_of", is_optional=True)
MEAN_REMARK = (
    "A measured energy is the geometric mean of the repeats that count; the table of power and energy has their median."
)
RUN = text_column("run", "run_id", is_optional=True)


def make_sample_table(document: CostDocument) -> Table | None:
    """Return a row per cell: cost, energy and CO2 of 1,000 samples on the cheapest machine that has its device.

    None where neither the cost nor the energy of a cell is known. CO2 depends on where a machine is.
    """
    has_price = any(cell.offers for cell in document.cells)
    has_energy = any(cell.energy is not None for cell in document.cells)
    if not has_price and not has_energy:
        return None
    money = Unit(label=document.currency, size=1.0)
    columns = [
        number_column("per hour", "price_per_hour", money, is_optional=True),
        *(_figure_columns("cost", "cost", money) if has_price else ()),
        *(_figure_columns("energy", "joules", JOULE) if has_energy else ()),
        ENERGY_SOURCE,
        number_column("CO2", "co2", GRAM, is_optional=True),
    ]

    def describe(cell: CellCost, offer: OfferCost | None) -> Row:
        return (
            _spread("joules", cell.energy.joules_per_1000_samples if cell.energy else None)
            | _spread("cost", offer.cost_per_1000_samples if offer else None)
            | _take_value("co2", offer.co2_grams_per_1000_samples if offer else None)
        )

    caption = f"{'Cost, energy and CO2' if has_price else 'Energy'} of 1,000 samples"
    return _make_cost_table(caption, columns, document, describe)


def make_job_table(document: CostDocument) -> Table | None:
    """Return a row per cell: time, cost, energy and CO2 of the whole job; None where no job was asked about."""
    if document.job is None:
        return None
    money = Unit(label=document.currency, size=1.0)
    columns = [
        *_figure_columns("time", "seconds", HOUR),
        *_figure_columns("cost", "cost", money),
        number_column("energy", "joules", KILOWATT_HOUR, is_optional=True),
        ENERGY_SOURCE,
        number_column("CO2", "co2", KILOGRAM, is_optional=True),
    ]

    def describe(cell: CellCost, offer: OfferCost | None) -> Row:
        return (
            _spread("seconds", cell.seconds_of_job)
            | _spread("joules", cell.joules_of_job)
            | _spread("cost", offer.cost_of_job if offer else None)
            | _take_value("co2", offer.co2_grams_of_job if offer else None)
        )

    epochs = f"{document.job.epochs:g} {'epoch' if document.job.epochs == 1 else 'epochs'}"
    caption = f"Time, cost, energy and CO2 of {epochs} of {document.job.num_samples:,} samples ({document.job.title})"
    return _make_cost_table(caption, columns, document, describe)


def _make_cost_table(
    caption: str,
    columns: Sequence[Column],
    document: CostDocument,
    describe: Callable[[CellCost, OfferCost | None], Row],
) -> Table:
    rows = []
    for cell in document.cells:
        offer = cell.offers[0] if cell.offers else None
        rows.append(_describe_cell(cell, offer, document) | describe(cell, offer))
    columns = [CELL, RUN, MACHINE, *columns]
    has_measured = any(cell.energy is not None and not cell.energy.is_estimate for cell in document.cells)
    return make_table(caption, columns, _make_frame(rows, columns), remark=MEAN_REMARK if has_measured else "")


def _describe_cell(cell: CellCost, offer: OfferCost | None, document: CostDocument) -> Row:
    energy = cell.energy
    source = "" if energy is None else " and ".join(energy.covers) + (", estimated" if energy.is_estimate else "")
    return {
        "label": cell.label,
        "run_id": cell.run_id if len(document.run_ids) > 1 else None,
        "place": None if offer is None else describe_place(cell, offer),
        "price_per_hour": None if offer is None else offer.price_per_hour,
        "energy_of": source or None,
    }


def _figure_columns(title: str, name: str, unit: Unit) -> list[Column]:
    low, high = f"{name}_low", f"{name}_high"
    return [
        number_column(title, name, unit, is_optional=True),
        interval_column("95 % interval of this cell alone", low, high, unit),
    ]


def _take_value(name: str, figure: Figure | None) -> Row:
    return {name: None if figure is None else figure.value}


def _spread(name: str, figure: Figure | None) -> Row:
    if figure is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: figure.value, f"{name}_low": figure.low, f"{name}_high": figure.high}


def _make_frame(rows: Sequence[Row], columns: Sequence[Column]) -> pd.DataFrame:
    texts = {"label", "run_id", "place", "energy_of"}
    values = {source: [row[source] for row in rows] for column in columns for source in column.sources}
    return pd.DataFrame(
        {name: pd.Series(found, dtype="str" if name in texts else "float64") for name, found in values.items()}
    )


def list_answer_lines(document: CostDocument) -> Iterator[str]:
    """Yield the choices for a deadline and a budget, and where a CPU node is the cheaper answer."""
    yield from (choice.sentence for choice in document.choices)
    yield from (answer.sentence for answer in document.cpu_answers)


def list_unpriced_lines(document: CostDocument) -> Iterator[str]:
    """Yield why cells have no price, each reason once with the number of its cells."""
    reasons = [cell.reason for cell in document.cells if cell.reason]
    for reason in dict.fromkeys(reasons):
        number = reasons.count(reason)
        yield f"{number} {'cell' if number == 1 else 'cells'}: {reason}"


def list_basis_lines(document: CostDocument) -> Iterator[str]:
    """Yield what the costs rest on: the prices used with their days and sources, methods of energy, assumptions."""
    yield f"Prices: {document.prices}, in {document.currency}."
    used = {
        (offer.place, f"{offer.machine_price_per_hour:g}", str(offer.price_date), offer.source)
        for cell in document.cells
        for offer in cell.offers[:1]
    }
    for place, price, day, source in sorted(used):
        yield f"{place}: {price} {document.currency} per hour, {day}, {source}"
    methods = {cell.energy.method for cell in document.cells if cell.energy is not None}
    yield from (f"Energy: {method}" for method in sorted(methods))
    if document.job is not None:
        yield f"{document.job.title}: {document.job.num_samples:,} samples, {document.job.source}"
    yield from document.assumptions


def write_markdown(document: CostDocument) -> str:
    """Return tables, answers and their basis as Markdown, in which no text of a result is read as markup."""
    tables = [table for table in (make_job_table(document), make_sample_table(document)) if table is not None]
    parts = [write_tables(tables)]
    for title, lines in (
        ("Answers", list(list_answer_lines(document))),
        ("Without a price", list(list_unpriced_lines(document))),
        ("What this rests on", list(list_basis_lines(document))),
    ):
        if lines:
            parts.append("\n".join([f"**{title}**\n", *(f"- {escape_markdown(line)}" for line in lines), ""]))
    return "\n".join(parts)
