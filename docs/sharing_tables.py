"""Make the tables of docs/sharing.md from the runs with tenants that are stored under docs/results."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import altair as alt
import pandas as pd
import vl_convert

from bench.schema import WHOLE_DEVICE, read_run
from collector.analysis import Analysis
from collector.cell_words import SHARING_NAMES
from collector.files import escape_markdown
from collector.labels import add_labels
from collector.report.charts import to_spec
from collector.report.figures import add_panels_of_cells, plot_aggregate, read_ratio
from collector.results.frames import Row, list_rows
from collector.units import RATIO, count_things, format_interval, format_number
from results_figures import StoredRun, write_table

PAGE = Path(__file__).parent / "sharing.md"
PICTURE = Path(__file__).parent / "pictures" / "sharing.png"
SHOWN = f"![What tenants get out of one GPU together, over one alone](pictures/{PICTURE.name})"
PANEL_PIXELS, NUM_COLUMNS = 300, 3
VEGA_LITE = ".".join(alt.SCHEMA_VERSION.split(".")[:2])
BEGIN, END = "<!-- sharing: made by `make results` from the runs under docs/results -->", "<!-- end -->"
NOT_PLANNED = "not planned"
NOTHING = "No run with tenants is stored under docs/results yet."
FIGURES: Mapping[str, str] = {
    "aggregate_ratio": "All tenants together, over one alone on the GPU (above 1, sharing gains):",
    "slowdown": "How many times slower each tenant is than alone:",
    "p99_ratio": "The p99 of a tenant's steps over that of the same work alone:",
    "energy_ratio": "Energy per sample over that alone (below 1, sharing saves):",
    "jain_index": "Jain's index of the tenants' shares:",
}
"""Column of `tabulate_sharing` to the sentence above its table."""
ON_PAGE = ("aggregate_ratio", "p99_ratio")
"""What docs/sharing.md has; the page of the runs has all."""


def make_sharing_page(text: str, runs: Iterable[tuple[str, StoredRun]]) -> str:
    """Return docs/sharing.md with the tables of these runs (folder under docs/results, run) between its markers."""
    if text.count(BEGIN) != 1:
        raise AssertionError(f"{PAGE.name}: expected the line {BEGIN} once")
    described = "\n\n".join(describe_run(folder, run) for folder, run in runs)
    described = f"{SHOWN}\n\n{described}" if described else NOTHING
    return re.sub(
        f"{re.escape(BEGIN)}.*?{END}", lambda _: f"{BEGIN}\n{described}\n{END}", text, count=1, flags=re.DOTALL
    )


def has_tenants(path: Path) -> bool:
    """Return whether a run, whose `run.json` is at `path`, planned cells that share a device."""
    return any(planned.cell.is_shared for planned in read_run(path.read_bytes()).cells)


def describe_run(folder: str, run: StoredRun) -> str:
    """Return what a run says of sharing, as Markdown."""
    facts = run.facts
    where = f"[What was measured](results/{folder}/README.md): {facts['measured']}."
    sharing = run.analysis.sharing
    tables = list_figures(sharing[sharing["neighbour"].isna()], {name: FIGURES[name] for name in ON_PAGE})
    return "\n\n".join([f"### {facts['GPU']}, `{run.run_id}`", where, *tables])


def list_sharing_tables(analysis: Analysis) -> list[str]:
    """Return the tables of a run's shared cells as Markdown, each with the sentence above it."""
    sharing = analysis.sharing
    alike = sharing[sharing["neighbour"].isna()]
    parts = list_figures(alike, FIGURES)
    mixed = sharing[sharing["neighbour"].notna()]
    if len(mixed):
        parts += ["Different work on one GPU: what a neighbour does.", tabulate_mixed(mixed)]
    fallen = sharing[sharing["fallen"].notna()].drop_duplicates("cell_id")
    texts = [f"{escape_markdown(row['label'])}, {row['fallen']}" for row in list_rows(fallen)]
    return [*parts, f"Out of memory: {'; '.join(texts)}."] if texts else parts


def list_figures(alike: pd.DataFrame, figures: Mapping[str, str]) -> list[str]:
    """Return the table of each of the figures that is known, with the sentence above it."""
    return [
        part
        for column, words in figures.items()
        if alike[column].notna().any()
        for part in (words, tabulate_by_tenants(alike, column))
    ]


def tabulate_by_tenants(rows: pd.DataFrame, column: str) -> str:
    """Return a table in Markdown: a row for each work alone, a column for each way of sharing and number of tenants.

    Columns without any figure are left out; elsewhere words say why there is none.
    """
    kinds = sorted(
        {(row["sharing"], row["tenants"]) for row in list_rows(rows[rows[column].notna()])},
        key=lambda kind: (list(SHARING_NAMES).index(kind[0]), kind[1]),
    )
    works = add_labels(rows.assign(tenants=1, sharing=WHOLE_DEVICE))["label"]
    found = {
        (work, row["sharing"], row["tenants"]): show_estimate(row, column)
        for work, row in zip(works, list_rows(rows), strict=True)
    }
    headings = ["cell", *(f"{count_things(number, 'tenant')}, {SHARING_NAMES[sharing]}" for sharing, number in kinds)]
    lines = [
        [escape_markdown(work), *(found.get((work, *kind), NOT_PLANNED) for kind in kinds)]
        for work in dict.fromkeys(works)
    ]
    return write_table(headings, ["", *["right"] * len(kinds)], lines)


def tabulate_mixed(rows: pd.DataFrame) -> str:
    """Return a table in Markdown of cells whose neighbours run something else: what each side loses."""
    columns = {"slowdown": "slowdown", "p50_ratio": "p50", "p95_ratio": "p95", "p99_ratio": "p99"}
    roles = {"cell": "the cell", "neighbour": "its neighbour"}
    lines = [
        [escape_markdown(row["label"]), roles[row["role"]], *(show_estimate(row, column) for column in columns)]
        for row in list_rows(rows)
    ]
    headings = ["cell", "tenants with", *(f"{title} over alone" for title in columns.values())]
    return write_table(headings, ["", "", *["right"] * len(columns)], lines)


def show_estimate(row: Row, column: str) -> str:
    """Return `1.44 (1.40 to 1.48)`, without the interval where there is none; why it is not known where it is not."""
    value, low, high = (row[f"{column}{end}"] for end in ("", "_low", "_high"))
    if pd.isna(value):
        return explain_missing(row, column)
    interval = "" if pd.isna(low) else f" ({format_interval(low, high, RATIO)})"
    return f"{format_number(value, RATIO)}{interval}"


def explain_missing(row: Row, column: str) -> str:
    """Return in words why a row of SHARING_COLUMNS has no figure in a column."""
    if isinstance(row["not_compared"], str):
        return escape_markdown(row["not_compared"])
    if re.fullmatch(r"p\d+_ratio", column):
        return "too few steps"
    return "energy not read" if column == "energy_ratio" else "not known"


def show_only_estimate(rows: pd.DataFrame, column: str) -> str:
    """Return `show_estimate` of the only row."""
    (row,) = list_rows(rows)
    return show_estimate(row, column)


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "by_tenants": tabulate_by_tenants,
    "mixed_table": tabulate_mixed,
    "sharing_tables": list_sharing_tables,
    "estimate": show_only_estimate,
}
"""What templates of docs/results call, by the name that they use."""


def draw_picture(analyses: Iterable[Analysis]) -> bytes | None:
    """Return a PNG of what tenants of each cell get together, by their number; None where no run has such a cell.

    On white, so that it can be read on dark pages too.
    """
    charts = [
        plot_aggregate(rows).properties(
            width=PANEL_PIXELS, height=PANEL_PIXELS // 2, title=alt.Title(title, fontSize=11)
        )
        for analysis in analyses
        for sharing in [analysis.sharing]
        for title, rows in _split_cells(sharing[sharing["neighbour"].isna()])
    ]
    if not charts:
        return None
    spec = to_spec(alt.concat(*charts, columns=NUM_COLUMNS)) | {"background": "white"}
    picture: bytes = vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=2)
    return picture


def _split_cells(sharing: pd.DataFrame) -> Iterable[tuple[str, pd.DataFrame]]:
    """Return the rows of each cell with its title, the cell alone before its tenants."""
    rows = add_panels_of_cells(read_ratio(sharing, "aggregate_ratio"))
    return ((str(title), found) for title, found in rows.groupby("panel", sort=False))
