"""Print the grid of a run and its doubts."""

from dataclasses import replace
from itertools import product

import pandas as pd
from rich.console import Console

from collector.analysis import Analysis
from collector.doubts import list_doubts
from collector.grid import Grid, describe_ratio, format_figure, format_half_width, make_grid
from collector.tables.table import Table, make_table, print_table, print_text, text_column
from collector.units import count_things

SIGNS = {"longer": "▲ ", "shorter": "▼ ", "undecided": "", "none": ""}
STATES = {"ok": "", "left-out": "left out"}
LEGEND = "▲ slower, ▼ faster than {}, ≈ no difference shown, ? no verdict"


def make_grid_table(grid: Grid) -> Table:
    """Return the grid of a run with a row per cell: work, program, step time, and how it compares with the baseline."""
    metric, rows, former = grid.metrics[0], [], ""
    for work, program in product(grid.works, grid.programs):
        place = grid.places.get((work, program))
        if place is None:
            continue
        said = describe_ratio(grid, metric, (work, program), grid.baseline)
        is_measured = place.state in ("ok", "unsound")
        ratio = "baseline" if program == grid.baseline else said["text"] if said else ""
        row = {
            "work": "" if work == former else work,
            "program": program,
            "time": format_figure(metric, place.row) if is_measured else "",
            "half": format_half_width(place.row) if is_measured else "",
            "ratio": f"{SIGNS[said['verdict']]}{ratio}" if said and is_measured else ratio if is_measured else "",
            "state": ""
            if place.state == "ok"
            else "left out"
            if place.state == "left-out"
            else place.status or place.state,
        }
        rows.append(row)
        former = work
    names = ("work", "program", "time", "half", "ratio", "state")
    columns = [
        text_column(f"work ({grid.shared})" if grid.shared else "work", "work"),
        text_column("program", "program"),
        replace(text_column("step, ms", "time"), align="right"),
        replace(text_column("95 %", "half", priority=2), align="right"),
        text_column("ratio", "ratio"),
        text_column("", "state", is_optional=True),
    ]
    return make_table("Step times", columns, pd.DataFrame(rows, columns=list(names)))


def print_summary(console: Console, analysis: Analysis) -> None:
    """Print the grid of a run and its doubts."""
    grid = make_grid(analysis)
    print_table(console, make_grid_table(grid))
    print_text(console, LEGEND.format(grid.baseline))
    doubts = list_doubts(analysis)
    titles = [f"! {doubt.title}" for doubt in doubts if doubt.severity == "beware"]
    unknown = len(doubts) - len(titles)
    titles += [f"? {count_things(unknown, 'thing')} not known, see the report"] if unknown else []
    if titles:
        print_text(console, " · ".join(titles))
