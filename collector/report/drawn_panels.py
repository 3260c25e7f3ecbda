"""Cut panels out of figures, as templates/scripts/panels.js does for the page: their rows, words and heights."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from collector.report.figure import Figure, Limit
from collector.results.frames import Row
from collector.units import format_significant

MAX_TOLD = 12
"""Points that the text of a plot names; a reader of texts has the table for the others."""
UNKNOWN = "unknown"
DataSets = Mapping[str, Sequence[Row]]


def list_panels(figure: Figure) -> list[Figure]:
    """Return a figure for each panel, with its content in words; the figure itself where it has none."""
    return [_cut_panel(figure, title) for title in figure.panels] if figure.panels else [figure]


def _cut_panel(figure: Figure, title: str) -> Figure:
    data = {
        name: [row for row in rows if row.get("panel", title) == title]
        for name, rows in figure.spec["datasets"].items()
    }
    shown = limit_rows(data, figure.limit)
    spec: dict[str, Any] = _narrow_legends(figure.spec, shown) | {"datasets": shown}
    if figure.row_pixels:
        numbers = {row["row"] for rows in shown.values() for row in rows if "row" in row}
        spec["height"] = figure.row_pixels * max(1, len(numbers))
    note = count_drawn(data, figure.limit)
    words = " ".join(filter(None, [note, describe_rows(shown, figure.says)]))
    return replace(figure, title=title, spec=spec, description=words, note=note, panels=())


def _narrow_legends(spec: Mapping[str, Any], data: DataSets) -> dict[str, Any]:
    """Return the document with legends of what occurs in a panel: scales span all, so that a sign has one meaning."""
    if "layer" not in spec:
        return dict(spec)
    layers = [
        layer | {"encoding": {name: _narrow_legend(channel, data) for name, channel in layer["encoding"].items()}}
        for layer in spec["layer"]
    ]
    return {**spec, "layer": layers}


def _narrow_legend(channel: Any, data: DataSets) -> Any:
    scale = channel.get("scale") if isinstance(channel, dict) else None
    if not scale or not channel.get("legend") or not isinstance(scale.get("domain"), list):
        return channel
    present = {row.get(channel["field"]) for rows in data.values() for row in rows}
    values = [name for name in scale["domain"] if name in present]
    return channel | {"legend": channel["legend"] | {"values": values}} if values else channel


def count_drawn(data: DataSets, limit: Limit | None) -> str:
    """Return how many of how many things a panel draws and which, as the page says it; empty where it draws all."""
    number = 0 if limit is None else len(_list_things(data, limit))
    if limit is None or number <= limit.most:
        return ""
    return f"Drawn are {limit.most} of {number:,} {limit.what}."


def limit_rows(data: DataSets, limit: Limit | None) -> dict[str, list[Row]]:
    """Return the rows of as many things as a panel draws; rows of nothing that is counted stay."""
    if limit is None:
        return {name: list(rows) for name, rows in data.items()}
    column = limit.column
    things = _list_things(data, limit)
    places: Iterable[int] = range(min(limit.most, len(things)))
    if limit.is_spread and len(things) > limit.most:
        places = np.linspace(0, len(things) - 1, limit.most).round().astype(int).tolist()
    kept = {things[place] for place in places}
    return {name: [row for row in rows if column not in row or row[column] in kept] for name, rows in data.items()}


def _list_things(data: DataSets, limit: Limit) -> list[Any]:
    return list(dict.fromkeys(row[limit.column] for rows in data.values() for row in rows if limit.column in row))


def describe_rows(data: DataSets, says: str) -> str:
    """Return what the rows say that have all columns of `says`, the first MAX_TOLD of them.

    Rows that stand for no cell of the run, such as where a line begins, say nothing.
    """
    names = re.findall(r"\{([^}]+)\}", says)
    rows = [row for rows in data.values() for row in rows if row.get("cell_id", "") is not None]
    known = [row for row in rows if names and all(name in row for name in names)]
    texts = list(dict.fromkeys(_describe_row(row, says) for row in known))
    more = f"; {len(texts) - MAX_TOLD} more in the table" if len(texts) > MAX_TOLD else ""
    return "; ".join(texts[:MAX_TOLD]) + more


def _describe_row(row: Row, says: str) -> str:
    return re.sub(r"\{([^}]+)\}", lambda found: _write(row[found[1]]), says)


def _write(value: Any) -> str:
    """Return a value in words: whole numbers with all digits, other numbers with three."""
    if value is None or value != value:
        return UNKNOWN
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if float(value).is_integer() else format_significant(value)
