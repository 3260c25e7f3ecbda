"""Offer the figures of stored runs to the templates of docs/results, as text that the collector's formats make.

A template selects rows of the collector's data frames (`gpu.summary(model="vgg16")`) and puts a column of them into
words (`one(rows, "center_step_seconds", MILLISECOND)`). Nothing is computed here.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import pandas as pd

from collector import comparisons
from collector.analysis import Analysis, analyze_run
from collector.facts import list_facts, state_outcome
from collector.files import escape_markdown
from collector.labels import label_shared
from collector.ratio_words import (
    count_differences,
    format_ratio,
    format_ratios,
    take_joint_intervals,
)
from collector.results.collection import Collection
from collector.results.frames import list_rows
from collector.results.hosts import list_drifted
from collector.results.summary import summarize_collections
from collector.tables.cells import NOTE, REPEATS, VERDICT, make_language_table, time_columns
from collector.tables.table import (
    CELL,
    Column,
    Table,
    make_table,
    number_column,
    ratio_column,
    ratio_interval_column,
    text_column,
)
from collector.units import (
    MILLISECOND,
    PERCENT,
    RATIO,
    SECOND,
    TFLOPS,
    Unit,
    count_things,
    format_interval,
    format_number,
)

COMPARISONS = {comparison.name: comparison for comparison in comparisons.COMPARISONS}
STEP_COLUMNS = (
    CELL,
    *time_columns("step time")[:2],
    number_column("of peak", "share_of_peak", PERCENT),
    REPEATS,
    VERDICT,
    NOTE,
)
PACE_COLUMNS = (
    CELL,
    number_column("waited for", "center_step_seconds", MILLISECOND),
    number_column("not waited for", "pipelined_step_seconds", MILLISECOND),
)
RUN_FACTS = ("measured", "CPU", "GPU")


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredRun:
    """One run as a template sees it."""

    collection: Collection
    matrix: str
    """The matrix file beside the page."""

    @property
    def run_id(self) -> str:
        return self.collection.run.run_id

    @property
    def facts(self) -> Mapping[str, str]:
        """What was run where and when, as the report says it, by name."""
        return dict(list_facts(self.collection))

    @property
    def outcome(self) -> str:
        """How many repeats ended ok and with which verdicts, in a few sentences."""
        return state_outcome(self.collection)

    @cached_property
    def analysis(self) -> Analysis:
        """The run with its summary and comparisons."""
        return analyze_run(self.collection)

    def summary(self, **fields: Any) -> pd.DataFrame:
        """Return the rows of the summary, one per cell, whose columns have these values (one, or any of a list)."""
        return select(self.analysis.summary, fields)

    def sharing(self, **fields: Any) -> pd.DataFrame:
        """Return the rows of the cells with tenants whose columns have these values, one per cell and role."""
        return select(self.analysis.sharing, fields)

    def results(self, **fields: Any) -> pd.DataFrame:
        """Return the repeats whose columns have these values."""
        return select(self.collection.results, fields)

    def steps(self, kind: str = "timed", **fields: Any) -> pd.DataFrame:
        """Return the `timed` or `warmup` steps of the repeats whose columns have these values, of tenant 0."""
        repeats = pd.MultiIndex.from_frame(self.results(**fields)[["cell_id", "repeat"]])
        samples = self.collection.samples
        samples = samples[(samples["kind"] == kind) & (samples["tenant"] == 0)]
        return samples[pd.MultiIndex.from_frame(samples[["cell_id", "repeat"]]).isin(repeats)]


def select(frame: pd.DataFrame, fields: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows whose columns have these values; AssertionError where there is none, a mistake of the page."""
    for name, value in fields.items():
        frame = frame[frame[name].isin(value if isinstance(value, list) else [value])]
    if frame.empty:
        raise AssertionError(f"no row has {dict(fields)}")
    return frame


def pair_cells(name: str, *runs: StoredRun, **fields: Any) -> pd.DataFrame:
    """Return the pairs of a comparison (`frameworks`, `devices`, ...) within these runs and across them."""
    return select(compare_runs(name, tuple(runs)), fields)


@cache
def compare_runs(name: str, runs: tuple[StoredRun, ...]) -> pd.DataFrame:
    """Return all pairs of a comparison within these runs and across them."""
    return comparisons.compare_cells(summarize_collections([run.collection for run in runs]), COMPARISONS[name])


def show_one(rows: pd.DataFrame, column: str, unit: Unit = RATIO) -> str:
    """Return the value of the only row, with its unit."""
    (text,) = format_values(rows[column], unit)
    return add_label(text, unit)


def show_span(rows: pd.DataFrame, column: str, unit: Unit = RATIO) -> str:
    """Return the least and the largest value, `61.1 to 61.8 ms`; one of them where both read the same."""
    values = rows[column].dropna().sort_values()
    low, high = format_values(values.iloc[[0, -1]], unit)
    return add_label(low if low == high else f"{low} to {high}", unit)


def show_all(rows: pd.DataFrame, column: str, unit: Unit = RATIO) -> str:
    """Return every value, in the order of the rows: `69.6, 61.4 and 61.4 ms`."""
    *texts, last = format_values(rows[column], unit)
    return add_label(" and ".join([", ".join(texts), last] if texts else [last]), unit)


def show_time(rows: pd.DataFrame) -> str:
    """Return the step time of the only row with its interval: `64.0 ms (53.4 to 76.6)`."""
    (row,) = list_rows(rows)
    low, high = row["interval_low_seconds"], row["interval_high_seconds"]
    interval: str = "no interval" if pd.isna(low) else format_interval(low, high, MILLISECOND)
    return f"{show_one(rows, 'center_step_seconds', MILLISECOND)} ({interval})"


def show_ratio(pairs: pd.DataFrame) -> str:
    """Return the ratio of the only pair with its interval: `1.213 (1.187 to 1.240)`."""
    (pair,) = list_rows(pairs)
    low, high = pair["ratio_low"], pair["ratio_high"]
    interval: str = "no interval" if pd.isna(low) else format_ratios(low, high)
    return f"{format_ratio(pair['ratio'])} ({interval})"


def format_values(values: "pd.Series[Any]", unit: Unit) -> list[str]:
    """Return the values in `unit`; counts are written in full."""
    if pd.api.types.is_integer_dtype(values):
        return [f"{value:,}" for value in values]
    return [format_number(value, unit) for value in values]


def add_label(number: str, unit: Unit) -> str:
    return " ".join(filter(None, [number, unit.label]))


def show_drift(run: StoredRun) -> str:
    """Return how far apart the matrix products of the run's only host that drifted lie: `1.53 to 2.33 TFLOP/s`."""
    (drift,) = list_drifted(run.collection.host_products)
    ends = pd.DataFrame({"rate": [drift.low, drift.high]})
    return show_span(ends, "rate", TFLOPS)


def tabulate_runs(runs: Iterable[StoredRun]) -> str:
    """Return a table of what was run where and when, and how it ended."""
    rows = [
        {"run": f"`{run.run_id}`", "matrix": f"[{run.matrix}]({run.matrix})"}
        | {name: escape_markdown(run.facts.get(name, "")) for name in RUN_FACTS}
        | {"outcome": escape_markdown(run.outcome)}
        for run in runs
    ]
    return write_table(list(rows[0]), [""] * len(rows[0]), [list(row.values()) for row in rows])


def tabulate_steps(run: StoredRun, **fields: Any) -> str:
    """Return the table of the step times of a run's cells, with their shares of the peak."""
    return write_markdown(make_table("", list(STEP_COLUMNS), run.summary(**fields)))


def tabulate_paces(run: StoredRun, **fields: Any) -> str:
    """Return the table of the step times of a run's cells, each step waited for and not."""
    return write_markdown(make_table("", list(PACE_COLUMNS), run.summary(**fields)))


def tabulate_language(run: StoredRun, **fields: Any) -> str:
    """Return the table of the run's language models."""
    table = make_language_table(run.analysis)
    return write_markdown(make_table("", list(table.columns), select(table.rows, fields)))


def tabulate_starts(run: StoredRun, **fields: Any) -> str:
    """Return the table of how long the cells took to start, cold and warm."""
    columns = [number_column(f"{kind} start", f"{kind}_start_seconds", SECOND) for kind in ("cold", "warm")]
    return write_markdown(make_table("", [CELL, *columns], run.summary(**fields)))


def tabulate_ratios(pairs: pd.DataFrame, title: str, *columns: str) -> str:
    """Return the table of pairs, the ratio called `title`; `columns`: further columns of words, by their names.

    Its intervals hold together. A sentence under it says how many ratios were tested, and how many differ.
    """
    shown = [
        text_column("workload", "workload"),
        Column(title="sides", sources=("subject", "reference"), format="{} / {}".format),
        ratio_column(title, "ratio"),
        ratio_interval_column("95 % interval", "ratio"),
        *(text_column(name.replace("_", " "), name) for name in columns),
    ]
    table = write_markdown(make_table("", shown, take_joint_intervals(pairs).assign(workload=label_shared(pairs))))
    return "\n\n".join(filter(None, [table, count_differences(pairs)]))


def write_markdown(table: Table) -> str:
    rows = [[escape_markdown(text) for text in row] for row in table.format_rows()]
    return write_table(table.headings, [column.align for column in table.columns], rows)


def write_table(headings: list[str], aligns: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown; an `align` of `right` puts numbers to the right."""
    rules = ["---:" if align == "right" else "---" for align in aligns]
    return "\n".join(f"| {' | '.join(line)} |" for line in [headings, rules, *rows])


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "pairs": pair_cells,
    "one": show_one,
    "span": show_span,
    "all": show_all,
    "drift": show_drift,
    "time": show_time,
    "ratio": show_ratio,
    "step_table": tabulate_steps,
    "ratio_table": tabulate_ratios,
    "pace_table": tabulate_paces,
    "language_table": tabulate_language,
    "start_table": tabulate_starts,
    "things": count_things,
}
"""What templates call, by the name that they use."""
