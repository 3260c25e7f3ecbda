"""Write the report of a run: one self-contained HTML file that opens offline.

All statistics and all texts are made here: the page's script chooses among them, sorts and draws. The content security
policy forbids every request and every script and style but those that are inlined, known by their hashes; templates
escape every text, and the script writes texts as text nodes alone.
"""

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from collector.analysis import Analysis
from collector.facts import describe_windows, list_doubts, list_facts
from collector.files import replace_steering, replace_text
from collector.grid import Grid, Place, describe_ratio, format_figure, format_spread, make_grid
from collector.report.charts import VEGA_LITE, size_spec
from collector.report.figures import FigureGroup, draw_plot
from collector.report.tables import SECTIONS, Section
from collector.results.frames import CELL_COLUMNS, Row, list_rows
from collector.tables.table import MAX_LISTED, Table
from collector.units import MILLISECOND, count_things, format_number
from collector.versus.words import describe_counts, name_verdicts

MAX_CELLS = 2000
"""Cells up to which a page shows all: more are for the files, and for `compare`."""
MAX_POINTS = 60
"""Points by which the steps of a repeat are drawn: medians of neighbouring steps, where there are more."""
MANY_CELLS = 500
"""From here on a page has no plots, 8 points a repeat and of each cell the fields that vary: 2,000 cells in 7 MB."""
POINTS_OF_MANY = 8
MAX_PANELS = 4
"""Panels of one plot that the page has; `benchmatrix report --figure` writes all."""
FIGURE_PIXELS = 620
HEADLINE = ("GPU", "driver", "CPU", "frameworks", "measured")
"""The facts that stand in the first line of the page."""
TEMPLATES = resources.files(__package__) / "templates"


def write_page(analysis: Analysis, path: Path, *, home: str = "") -> None:
    """Write the report of an analysed run to `path`, whose directory is made if absent; UserError if it cannot be.

    `home`: of a page in a site, the address of the list of runs.
    """
    replace_text(path, make_page(analysis, home=home))


def make_page(analysis: Analysis, *, home: str = "") -> str:
    collection, grid = analysis.collection, make_grid(analysis)
    style, script = _read("page.css"), _read("page.js")
    results, facts = collection.results, dict(list_facts(collection))
    named = {name: f"driver {text}" if name == "driver" else text for name, text in facts.items()}
    data, timed = make_data(analysis, grid), ("timed", describe_windows(collection))
    return (
        open_templates()
        .get_template("page.html.j2")
        .render(
            run=collection.run,
            home=home,
            policy=state_policy([style], [script]),
            style=Markup(style),
            script=Markup(script),
            headline=" · ".join(filter(None, [named.get(name, "") for name in HEADLINE] + _list_conditions(analysis))),
            facts=[*(one for one in facts.items() if one[0] not in ("matrix", "run", *HEADLINE)), timed],
            outcome=f"{int((results['status'] == 'ok').sum()):,} of {count_things(len(results), 'repeat')} ok, "
            f"{count_things(len(collection.run.cells), 'cell')}.",
            doubts=list_doubts(analysis),
            grid=grid,
            shown=data,
            since=describe_since(analysis),
            has_plots=len(grid.places) < MANY_CELLS,
            sections=[*_view_sections(analysis, has_plots=len(grid.places) < MANY_CELLS)],
            figure=lambda place: _show_figure(grid, place),
            data=Markup(json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")),
        )
    )


def _show_figure(grid: Grid, place: Place) -> Markup:
    """Return what stands at a place while no script runs: the step time with its ratio to the usual baseline."""
    metric = grid.metrics[0]
    said = describe_ratio(grid, metric, (place.work, place.program), grid.baseline)
    ratio = "baseline" if place.program == grid.baseline else said[0]
    form = Markup("<span><b>{}</b> <i>{}</i><small>{}</small></span>")
    return form.format(format_figure(metric, place.row), format_spread(metric, place.row), ratio)


def read_data(html: str) -> Any:
    """Return what a page shows of its run, as `make_data` made it: two pages of one run are equal if this is."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    return json.loads(found[1]) if found else None


def _list_conditions(analysis: Analysis) -> list[str]:
    measured = analysis.measured
    on_gpu = measured[measured["device"] == "gpu"]
    data = "synthetic data" if len(measured) and measured["data_dir"].isna().all() else ""
    return [data, "fp32 without TF32" if (on_gpu["precision"] == "fp32").any() else ""]


def make_data(analysis: Analysis, grid: Grid) -> dict[str, Any]:
    """Return the texts of the grid by metric and baseline, and the repeats and steps of each cell, as JSON holds them.

    Places are [work, program, ...], ratios [baseline, work, program, verdict, what `describe_ratio` says by metric].
    """
    works = {name: number for number, name in enumerate(grid.works)}
    programs = {name: number for number, name in enumerate(grid.programs)}
    places = list(grid.places.items())[:MAX_CELLS]
    kept = {key for key, _ in places}
    best = {work: [grid.find_best(work, one) for one in grid.metrics] for work in grid.works}
    shown = _list_fields(grid)
    return {
        "run": analysis.collection.run.run_id,
        "works": list(grid.works),
        "programs": list(grid.programs),
        "baseline": programs.get(grid.baseline, 0),
        "tested": [grid.num_tested[name] for name in grid.programs],
        "metrics": [
            {"name": one.name, "title": one.title, "unit": one.unit.label, "judged": one.signs is not None}
            for one in grid.metrics
        ],
        "places": [
            [works[key[0]], programs[key[1]], _describe_place(place, grid, shown, best[key[0]])]
            for key, place in places
        ],
        "ratios": [
            [programs[baseline], works[key[0]], programs[key[1]], ratio.verdict]
            + [[describe_ratio(grid, metric, key, baseline) for metric in grid.metrics]]
            for baseline, found in grid.ratios.items()
            for key, ratio in found.items()
            if key in kept
        ],
        "steps": _thin_steps(analysis) if len(grid.places) <= MAX_CELLS else {},
    }


def _list_fields(grid: Grid) -> list[str]:
    """Return the fields of cells that a page has: all, or of many cells those that vary or that `compare` is given."""
    rows = pd.DataFrame([place.row for place in grid.places.values()])
    named = [name for name in CELL_COLUMNS if name in rows]
    if len(rows) < MANY_CELLS:
        return named
    kept = ("model", "phase", "batch_size")
    return [name for name in named if name in kept or rows[name].nunique(dropna=False) > 1]


def _describe_place(place: Place, grid: Grid, shown: Sequence[str], best: Sequence[set[str]]) -> Row:
    row = place.row
    fields = {name: row[name] for name in shown if name in row and not pd.isna(row[name])}
    described = {
        "id": place.cell_id,
        "state": place.state,
        "cell": {name: getattr(value, "item", lambda value=value: value)() for name, value in fields.items()},
    }
    if place.status:
        described["status"] = place.status
    if place.state in ("failed", "left-out"):
        return described
    counted = f"{row['num_counted']} of {row['num_planned']}"
    return described | {
        "figures": [format_figure(metric, row) for metric in grid.metrics],
        "spreads": [format_spread(metric, row) for metric in grid.metrics if metric.signs],
        "best": [place.program in programs for programs in best],
        "repeats": f"{counted} repeats count" + (f"; {row['faults']}" if row["faults"] else ""),
        "note": row["note"] or "",
    }


def _thin_steps(analysis: Analysis) -> dict[str, list[Row]]:
    """Return of each cell its repeats with their timed steps in microseconds, at most MAX_POINTS medians of each."""
    found: dict[str, list[Row]] = {}
    results, steps = analysis.collection.results, analysis.collection.steps
    most = MAX_POINTS if len(analysis.summary) < MANY_CELLS else POINTS_OF_MANY
    names = ["cell_id", "repeat", "status", "verdict", "verdict_reasons", "center_step_seconds", "machine"]
    for place, row in enumerate(list_rows(results[names])):
        center = row["center_step_seconds"]
        words = [row["status"], row["verdict"] or "", row["verdict_reasons"] or ""]
        repeat = {"repeat": int(row["repeat"]), "says": ": ".join(filter(None, words)), "machine": row["machine"] or ""}
        repeat["ms"] = "" if center is None else format_number(float(center), MILLISECOND, 4)
        timed = next(iter(steps.read_timed(place)), ())
        if len(timed):
            parts = np.array_split(1e6 * np.asarray(timed), min(len(timed), most))
            repeat["steps"] = [float(f"{np.median(part):.4g}") for part in parts]
        found.setdefault(str(row["cell_id"]), []).append(repeat)
    return found


def describe_since(analysis: Analysis) -> tuple[str, str] | None:
    if analysis.since is None:
        return None
    words = name_verdicts(analysis.since.metric, is_within_runs=False)
    counts = describe_counts(Counter(analysis.since.counts), words)
    return analysis.since.a.label, counts.replace("fail in B", "fail now")


def _view_sections(analysis: Analysis, *, has_plots: bool) -> Iterator[tuple[Section, list[Any], list[Any]]]:
    """Yield each section that has a table or a plot, with what the template shows of its tables and plots."""
    for section in SECTIONS:
        limit = MAX_CELLS if section.is_complete else MAX_LISTED
        tables = [_view_table(table.lift_alike(), limit) for table in section.make_tables(analysis)]
        plots = [_view_plot(name, group) for name in section.plots if has_plots for group in draw_plot(name, analysis)]
        if tables or plots:
            yield section, tables, plots


def _view_table(table: Table, limit: int) -> tuple[Table, Sequence[tuple[str, ...]], Sequence[str]]:
    """Return a table with the texts of its first rows and, of each row, the ids of the cells that it is of."""
    number = len(table.rows)
    if number > limit:
        more = f"The first {limit:,} of {number:,}; the files of `benchmatrix report --format csv` have all."
        table = replace(table, rows=table.rows.head(limit), remark=" ".join(filter(None, [table.remark, more])))
    named = [name for name in ("cell_id", "cell_id_subject", "cell_id_reference") if name in table.rows]
    cells = table.rows[named].astype("str").agg(" ".join, axis="columns") if named else [""] * len(table.rows)
    return table, table.format_rows(), list(cells)


def _view_plot(name: str, group: FigureGroup) -> tuple[str, list[tuple[str, str, Sequence[str]]], str]:
    """Return the question of a plot, its first MAX_PANELS panels as pictures with their words, and its caption."""
    panels, caption = group.figures, group.caption
    if len(panels) > MAX_PANELS:
        caption += f" The first {MAX_PANELS} of {len(panels)}; `benchmatrix report --figure {name}` writes all."
    pictures = []
    for panel in panels[:MAX_PANELS]:
        svg = vl_convert.vegalite_to_svg(size_spec(panel, FIGURE_PIXELS, has_title=True), vl_version=VEGA_LITE)
        address = f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"  # can neither load nor run
        sizes = re.findall(r'^<svg [^>]*?width="([\d.]+)" height="([\d.]+)"', svg)
        pictures.append((address, f"{panel.title}: {panel.description}", sizes[0]))
    return group.question, pictures, caption


def state_policy(styles: Iterable[str], scripts: Iterable[str]) -> str:
    """Return a content security policy that forbids every request and every style and script but those given."""

    def allow(texts: Iterable[str]) -> str:
        hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
        return " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"

    return f"default-src 'none'; img-src data:; style-src {allow(styles)}; script-src {allow(scripts)}"


def open_templates() -> Environment:
    """Return the templates of all pages: every text that they show is escaped, and cannot turn around what follows."""
    return Environment(loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined, finalize=_show)


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _show(value: object) -> object:
    return replace_steering(value) if type(value) is str else value


INDEX = "index.html"
HOME = f"../../{INDEX}"
"""The address of the list of runs from the page of one."""


@dataclass(frozen=True, kw_only=True)
class SiteRun:
    """One line of the list of runs."""

    run_id: str
    matrix: str
    created_at: str
    outcome: str
    """How its repeats ended, in words; why it cannot be read, if it cannot."""
    has_page: bool = True


def find_page(site: Path, run_id: str) -> Path:
    return site / "runs" / run_id / INDEX


def write_index(runs: Iterable[SiteRun], site: Path) -> Path:
    """Write the list of runs, the newest first and those of a matrix together; return its path."""
    newest = sorted(runs, key=lambda run: run.created_at, reverse=True)
    names = dict.fromkeys(run.matrix for run in newest)
    matrices = {name: [run for run in newest if run.matrix == name] for name in names}
    page = open_templates().get_template("site.html.j2")
    text = page.render(
        matrices={name: (count_things(len(found), "run"), found) for name, found in matrices.items()},
        policy=state_policy([_read("page.css")], []),
        style=Markup(_read("page.css")),
    )
    replace_text(site / INDEX, text)
    return site / INDEX
