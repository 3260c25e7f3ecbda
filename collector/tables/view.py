"""Columns of base units come in, columns of formatted strings and the table for people that holds them go out."""

from dataclasses import dataclass

import pandas as pd

from collector.units import Unit, format_interval, format_number

# Columns that hold words; all others are numbers, read from the right.
WORDS = frozenset(
    {
        "CPU",
        "GPU",
        "bound by",
        "cell",
        "hardware",
        "key",
        "note",
        "peak from",
        "reason",
        "reasons",
        "sides",
        "throttled by",
        "verdict",
        "workload",
    }
)


@dataclass(frozen=True, kw_only=True)
class TableView:
    """A table of strings for people. Its first column names the row; `words` are the columns that hold no numbers."""

    caption: str
    frame: pd.DataFrame
    words: frozenset[str]


def make_view(caption: str, columns: dict[str, list[str]]) -> TableView:
    """Return the table of `columns`; a note is left out where no row has one."""
    frame = pd.DataFrame(columns, dtype="str")
    if "note" in frame and not frame["note"].any():
        frame = frame.drop(columns="note")
    return TableView(caption=caption, frame=frame, words=WORDS & frozenset(frame.columns))


def format_column(values: "pd.Series[float]", unit: Unit) -> list[str]:
    """Return the values in `unit`, a dash where there is none."""
    return [format_number(None if pd.isna(value) else float(value), unit) for value in values]


def format_known(frame: pd.DataFrame, titles: dict[str, tuple[str, Unit]]) -> dict[str, list[str]]:
    """Return a column of texts for each column of `frame` in `titles` (name to title and unit) that has any value."""
    return {
        f"{title}, {unit.label}": format_column(frame[name], unit)
        for name, (title, unit) in titles.items()
        if frame[name].notna().any()
    }


def format_intervals(lows: "pd.Series[float]", highs: "pd.Series[float]", unit: Unit) -> list[str]:
    """Return `low to high` in `unit`, a dash where there is no interval."""
    return [format_interval(low, high, unit) for low, high in zip(lows, highs, strict=True)]


def fill_texts(values: "pd.Series[str]") -> list[str]:
    """Return the texts, empty where there is none."""
    return values.fillna("").to_list()
