"""Say for each kind of work which cell costs least for 1,000 samples: as a table of the report, and in sentences."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from collector.analysis import MAX_PRICED_CELLS, Analysis
from collector.answers.answer import Figures, Said
from collector.answers.cheapest import Cheapest, Priced, list_cheapest
from collector.answers.cost_rules import ANCHOR, name_place, name_places
from collector.answers.ratios import quote_jointly
from collector.facts import join_words, list_some
from collector.labels import DEVICE_NAMES
from collector.results.frames import Row
from collector.tables.columns import count_column, interval_column, number_column, text_column
from collector.tables.comparisons import INTERVAL_TITLE
from collector.tables.table import Table, make_table
from collector.units import SECOND, Unit, format_number

CAPTION = "The cheapest for each model and phase"
STARTUP = ", start-up "
MAX_TIED = 3
"""Cells not told from the cheapest that are named."""
MAX_WORKS = 4
"""Kinds of work of which a sentence says the cheapest cell."""


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
        f"{name_places(((one.first.cell, one.first.offer) for one in priced.cheapest), analysis)}"
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
        replace(text_column("cheapest", "programs"), is_finding=True),
        text_column("on", "device"),
        text_column("precision", "precision"),
        replace(count_column("batch", "batch_size"), is_finding=True),
        number_column("1,000 samples", "cost", unit),
        interval_column(INTERVAL_TITLE, "cost_low", "cost_high", unit),
        number_column("start-up, not in it", "startup_seconds", SECOND),
        text_column("cells priced", "num_cells"),
        text_column("at", "place"),
    ]
    rows = [_describe_cheapest(one, priced.num_costs, analysis) for one in priced.cheapest]
    frame = pd.DataFrame(rows).assign(work=priced.works)
    caption = f"{CAPTION}{_describe_priced(len(analysis.summary))}"
    return make_table(caption, columns, frame).lift_alike()


def _describe_cheapest(one: Cheapest, number: int, analysis: Analysis) -> Row:
    first = one.first
    low, high = first.cost.find_joint_interval(number) or (None, None)
    names = ("cell_id", "precision", "batch_size")
    return {name: first.row[name] for name in names} | {
        "programs": f"{_name_program(first)}{_name_tied(one)}",
        "device": DEVICE_NAMES[first.row["device"]],
        "cost": first.cost.center,
        "cost_low": low,
        "cost_high": high,
        "startup_seconds": first.startup_seconds,
        "num_cells": str(one.num_cells),
        "place": name_place(first.cell, first.offer, analysis),
    }


def _name_program(one: Priced) -> str:
    return str(one.row["variant"])


def _name_tied(one: Cheapest) -> str:
    """Return `, not told from PyTorch eager (bf16)`, with what such cells differ in besides; empty where none is."""
    named = [_name_beside(other, one.first) for other in one.tied]
    return f", not told from {join_words(list_some(named, MAX_TIED))}" if named else ""


def _name_beside(other: Priced, first: Priced) -> str:
    """Return the program of a cell, and in brackets what of its device, batch and precision is not the first one's."""
    own, others = _list_particulars(first), _list_particulars(other)
    differing = [theirs for theirs, mine in zip(others, own, strict=True) if theirs != mine]
    return f"{_name_program(other)} ({', '.join(differing)})" if differing else _name_program(other)


def _list_particulars(one: Priced) -> Sequence[str]:
    return DEVICE_NAMES[one.row["device"]], f"batch {one.row['batch_size']}", str(one.row["precision"])


def _describe_priced(num_cells: int) -> str:
    """Return which cells were priced, where that is not all of them."""
    return f" among the first {MAX_PRICED_CELLS:,} of {num_cells:,} cells" if num_cells > MAX_PRICED_CELLS else ""


def _say_cheapest(work: str, one: Cheapest, number: int, unit: Unit) -> str:
    """Return `conv6 infer 0.000836 (0.000822 to 0.000851): GPU, batch 64, fp32, TensorFlow graph, start-up 5.61 s`."""
    first, seconds = one.first, one.first.startup_seconds
    startup = "" if math.isnan(seconds) else f"{STARTUP}{format_number(seconds, SECOND)} s"
    program = ", ".join([*_list_particulars(first), _name_program(first)])
    return f"{work} {quote_jointly(first.cost, number, unit)}: {program}{_name_tied(one)}{startup}"
