"""Build the report's figures of shared devices: together, each tenant, and what a neighbour does to latencies."""

import pandas as pd

from collector.labels import add_labels
from collector.report.figure import ROWS, FigureGroup, name_panels
from collector.report.panels import show_panels
from collector.report.plots.marks import CROSS_CAPTION
from collector.report.plots.measurements import RATIO_PIXELS, plot_ratios
from collector.report.plots.sharing import plot_aggregate, plot_slowdown
from collector.results.cells import WHOLE_DEVICE

COLUMNS = ("ratio", "ratio_low", "ratio_high")
LATENCIES = {"p50_ratio": "p50", "p95_ratio": "p95", "p99_ratio": "p99"}


def show_sharing(sharing: pd.DataFrame) -> tuple[FigureGroup, ...]:
    """Return the figures on shared devices, in groups; leave out groups that have nothing to draw.

    `sharing`: rows of `tabulate_sharing`.
    """
    alike = sharing[sharing["neighbour"].isna()]
    mixed = sharing[sharing["neighbour"].notna() & (sharing["role"] == "cell")]
    groups = (
        _show_together(add_panels_of_cells(read_ratio(alike, "aggregate_ratio"))),
        _show_slowdowns(add_panels_of_cells(read_ratio(alike, "slowdown"))),
        _show_latencies(mixed),
    )
    return tuple(group for group in groups if group.figures)


def _show_together(rows: pd.DataFrame) -> FigureGroup:
    return show_panels(
        rows,
        plot_aggregate,
        "{tenants} tenants by {by}: together {ratio} times one alone",
        question="What do tenants get out of one device together?",
        caption="The throughput of all tenants over that of one alone on the device, with its 95 % interval where "
        f"both have two repeats. At the dashed line, sharing gains and loses nothing. {CROSS_CAPTION}",
        value="ratio",
    )


def _show_slowdowns(rows: pd.DataFrame) -> FigureGroup:
    return show_panels(
        rows,
        plot_slowdown,
        "{tenants} tenants by {by}: each {ratio} times slower",
        question="How much slower is each tenant?",
        caption="The rate alone over that of a tenant, the geometric mean of the tenants, with its 95 % interval "
        "where both have two repeats. At the dashed line n tenants are each n times slower; below it, sharing is worth "
        f"more than taking turns. {CROSS_CAPTION}",
        value="ratio",
    )


def _show_latencies(mixed: pd.DataFrame) -> FigureGroup:
    named = [take_ratio(mixed, column).assign(percentile=percentile) for column, percentile in LATENCIES.items()]
    rows = pd.concat(named, ignore_index=True) if len(mixed) else mixed.assign(ratio_low=None, percentile="")
    rows = name_panels(rows[rows["ratio_low"].notna()], rows.loc[rows["ratio_low"].notna(), "label"].to_list())
    rests = [sorted(rest.split(", "), key=_is_of_cell) for rest in rows["rest"]]
    names = [", ".join([percentile, *rest]) for percentile, rest in zip(rows["percentile"], rests, strict=True)]
    return show_panels(
        rows.assign(name=names),
        lambda shown: plot_ratios(
            shown, better="shorter", worse="longer", above_is_better=False, of="time beside the neighbour / time alone"
        ),
        "{name}: {ratio} times",
        question="What does a neighbour do to the latency?",
        caption="A percentile of the cell's steps beside its neighbour over the same percentile alone, with its 95 % "
        "interval. Right of 1 the neighbour makes it longer.",
        limit=ROWS,
        row_pixels=RATIO_PIXELS,
    )


def _is_of_cell(part: str) -> bool:
    """Return whether a part of a label is of the cell and not of its tenants, which a narrow plot shows first."""
    return "tenant" not in part and not part.startswith("beside ")


def take_ratio(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows that have an estimate in `column`, as ratio, ratio_low and ratio_high."""
    return read_ratio(rows[rows[column].notna()], column)


def read_ratio(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return all rows with the estimate of `column` as ratio, ratio_low and ratio_high, and whether they are sound."""
    ends = ("", "_low", "_high")
    ratios = {name: rows[f"{column}{end}"] for name, end in zip(COLUMNS, ends, strict=True)}
    return rows.assign(is_sound=rows["num_sound"] > 0, **ratios)


def add_panels_of_cells(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a panel for each cell, its name without its tenants, and in each the cell alone as 1 tenant.

    Rows without a ratio are among them, for lines break there; a cell without any ratio has no panel.
    """
    if rows.empty:
        return rows.assign(panel="")
    named = rows.assign(panel=add_labels(rows.assign(tenants=1, sharing=WHOLE_DEVICE))["label"])
    named = named[named.groupby("panel")["ratio"].transform("count") > 0]
    alone = pd.DataFrame({"panel": list(dict.fromkeys(named["panel"])), "tenants": 1, "sharing": WHOLE_DEVICE})
    return pd.concat([alone.assign(ratio=1.0, is_sound=True), named], ignore_index=True)
