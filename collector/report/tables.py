"""The folded sections of the report with their tables and plots, and the grid and doubts of a run on the terminal.

To add a table: write a function in collector/tables/, and name it in the `tables` of a section here.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import NamedTuple

import pandas as pd
from rich.console import Console

from collector.analysis import Analysis
from collector.comparisons import COMPARISONS, STRONG_SCALING, WEAK_SCALING
from collector.costs.document import CostDocument, make_sample_table, make_token_table
from collector.facts import list_doubts
from collector.grid import Grid, describe_ratio, format_figure, format_spread, make_grid
from collector.tables import cells, comparisons
from collector.tables.environments import make_environments_table, make_machines_table, make_shared_environment_table
from collector.tables.table import Table, make_table, print_table, print_text, text_column
from collector.units import count_things
from collector.versus.words import make_cell_table, sort_cells

LEGEND = "▲ slower, ▼ faster than {}, ≈ no difference shown, ? no verdict"


def make_grid_table(grid: Grid) -> Table:
    metric, rows, former = grid.metrics[0]._replace(words=("×", "×")), [], ""
    for key in product(grid.works, grid.programs):
        (work, program), place = key, grid.places.get(key)
        if place is None:
            continue
        time = spread = ratio = ""
        if place.state in ("ok", "unsound"):
            time, (ratio, *_) = format_figure(metric, place.row), describe_ratio(grid, metric, key, grid.baseline)
            spread = format_spread(metric, place.row).replace(" to ", "–")  # short, for 80 columns
            ratio = "baseline" if program == grid.baseline else ratio
        state = {"ok": "", "left-out": "left out"}.get(place.state, place.status or place.state)
        rows.append(("" if work == former else work, program, time, spread, ratio, state))
        former = work
    columns = [
        text_column(f"work ({grid.shared})" if grid.shared else "work", "work"),
        text_column("program", "program"),
        replace(text_column("ms", "time"), align="right"),
        replace(text_column("95 %", "spread", priority=2), align="right"),
        text_column("ratio", "ratio"),
        text_column("", "state", is_optional=True),
    ]
    names = ["work", "program", "time", "spread", "ratio", "state"]
    return make_table("Step times", columns, pd.DataFrame(rows, columns=names))


def print_summary(console: Console, analysis: Analysis) -> None:
    grid = make_grid(analysis)
    print_table(console, make_grid_table(grid))
    print_text(console, LEGEND.format(grid.baseline))
    doubts = list_doubts(analysis)
    titles = [f"! {doubt.title}" for doubt in doubts if doubt.severity == "beware"]
    unknown = len(doubts) - len(titles)
    titles += [f"? {count_things(unknown, 'thing')} not known, see the report"] if unknown else []
    if titles:
        print_text(console, " · ".join(titles))


MakeTable = Callable[[Analysis], Table | None]


def _make_cost_table(analysis: Analysis, *, make: Callable[[CostDocument], Table | None]) -> Table | None:
    return None if analysis.costs is None else make(analysis.costs)


def _make_since_table(analysis: Analysis) -> Table | None:
    if analysis.since is None:
        return None
    table = make_cell_table(analysis.since, sort_cells(analysis.since))
    return replace(table, remark=f"A is the run {analysis.since.a.label}, B this run. {table.remark}".rstrip())


class Section(NamedTuple):
    """Describes one section of the report, which leaves it out where it has neither a table nor a plot."""

    anchor: str
    title: str
    about: str
    """What is in it, in a few words, beside the title."""
    tables: tuple[MakeTable, ...] = ()
    plots: tuple[str, ...] = ()
    """The names of `collector.report.figures`."""
    is_complete: bool = False
    """Whether its tables have every cell that the page has; else they end after MAX_LISTED rows."""

    def make_tables(self, analysis: Analysis) -> list[Table]:
        made = (make(analysis) for make in self.tables)
        return [table for table in made if table is not None and len(table.rows)]


SECTIONS = (
    Section("ranking", "Ranking", "fastest and cheapest", (comparisons.make_ranking_table,)),
    Section("failures", "Failures", "what they wrote", (cells.make_failures_table,)),
    Section(
        "cells",
        "All cells",
        "a row opens its steps",
        (cells.make_training_table, cells.make_inference_table, cells.make_language_table, cells.make_sustained_table),
        is_complete=True,
    ),
    Section(
        "scaling",
        "Batches and GPUs",
        "how the step time grows",
        tuple(partial(comparisons.make_comparison_table, one) for one in (WEAK_SCALING, STRONG_SCALING)),
        ("latencies", "tokens", "scaling"),
    ),
    Section(
        "memory",
        "Memory and durations",
        "peak memory, where time goes",
        (cells.make_memory_table, cells.make_durations_table),
        ("memory",),
    ),
    Section(
        "roofline",
        "Energy and roofline",
        "clocks, power, share of the peak",
        (cells.make_energy_table, cells.make_devices_table, cells.make_roofline_table, cells.make_kernel_time_table),
        ("roofline",),
    ),
    Section(
        "costs",
        "Cost",
        "samples and tokens at listed prices",
        tuple(partial(_make_cost_table, make=make) for make in (make_sample_table, make_token_table)),
    ),
    Section(
        "sharing",
        "Sharing",
        "what tenants of one device do to each other",
        (
            comparisons.make_tenant_speed_table,
            comparisons.make_tenant_latency_table,
            comparisons.make_shared_device_table,
        ),
        ("tenants",),
    ),
    Section("since", "Since the last run", "each cell against that run, as compare judges it", (_make_since_table,)),
    Section("nights", "Changes over the nights", "and what became of them", (comparisons.make_nights_table,)),
    Section(
        "not-counted",
        "What does not count",
        "repeats, cells and documents",
        (cells.make_invalid_table, cells.make_left_out_table, cells.make_skipped_table),
    ),
    Section(
        "environments",
        "Environments",
        "machines, versions, settings",
        (make_machines_table, make_environments_table, make_shared_environment_table),
    ),
)


def list_tables(analysis: Analysis) -> list[Table]:
    """Return the tables of all sections and comparisons with all of their columns, for files."""
    compared = [comparisons.make_comparison_table(one, analysis) for one in COMPARISONS if one.measure != "efficiency"]
    return [
        *(one for one in compared if len(one.rows)),
        *(one for own in SECTIONS for one in own.make_tables(analysis)),
    ]
