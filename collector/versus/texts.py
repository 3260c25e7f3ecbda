"""Put the parts of a comparison into words and tables, for the terminal and for Markdown alike."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd

from collector.facts import count_things
from collector.ratio_words import format_ratio, format_ratios
from collector.tables.columns import number_column, text_column
from collector.tables.ratio_columns import ratio_column, ratio_interval_column
from collector.tables.table import MAX_LISTED, Column, Table, make_table
from collector.units import MIB, NOT_THERE, PERCENT, RATIO, Unit, choose_memory_unit, format_number
from collector.versus.conclusion import name_verdicts
from collector.versus.document import (
    CellComparison,
    CompareDocument,
    EnvironmentDifference,
    GroupComparison,
    UnpairedCell,
)
from collector.versus.metrics import METRICS

# The verdicts that call for somebody's attention stand first.
ORDER = ("fails", "worse", "undecided", "better", "same", "not comparable")
MAX_FACTS = 30
MAX_VALUES = 3
MAX_VALUE_LETTERS = 60
NO_DIFFERENCE = "The environments of A and B do not differ in anything that was recorded."
NO_ENVIRONMENT = "The environments of A and B cannot be compared: no repeat of one of them ended ok."
MACHINES_DIFFER = "The hardware differs: this is a comparison of machines, and says nothing about the software alone."
ALONE = "this ratio alone"


def name_verdict(verdict: str, document: CompareDocument) -> str:
    """Return a verdict in the words of the metric: `slower`, `within the floor`."""
    return name_verdicts(document.metric, is_within_runs=document.is_within_runs)[verdict]


def sort_cells(document: CompareDocument) -> list[CellComparison]:
    """Return the cells with those first that call for attention, in each verdict the largest ratio first.

    Within the same runs no change is looked for: the cells stand as they were planned, as in the table of the run.
    """
    if document.is_within_runs:
        return list(document.cells)
    return sorted(document.cells, key=lambda cell: (ORDER.index(cell.verdict), -(cell.ratio or 0.0)))


def list_side_lines(document: CompareDocument) -> Iterator[str]:
    """Yield what the sides are, and in which fields they differ without being told to."""
    yield f"A: {document.a.label}"
    yield f"B: {document.b.label}"
    if document.inferred:
        found = "; ".join(f"{one.field}: {one.a} in A, {one.b} in B" for one in document.inferred)
        yield f"{found} (each side has one)"


def make_difference_table(document: CompareDocument) -> Table:
    """Return the facts of the environments that differ, MAX_FACTS at the most.

    Settings and packages that only the framework of one side has are counted: they cannot be alike.
    """
    differing = [one for one in document.differences if not one.is_of_one_framework]
    shown = differing[:MAX_FACTS]
    rows = pd.DataFrame(
        {
            "fact": [one.fact for one in shown],
            "a": [_join(one.a) for one in shown],
            "b": [_join(one.b) for one in shown],
        }
    )
    columns = [text_column("differs", "fact"), text_column("A", "a"), text_column("B", "b")]
    return make_table("Environments", columns, rows, remark=" ".join(_list_unlisted(document, len(differing))))


def _list_unlisted(document: CompareDocument, num_differing: int) -> Iterator[str]:
    num_own = sum(one.is_of_one_framework for one in document.differences)
    if num_differing > MAX_FACTS:
        yield f"{count_things(num_differing - MAX_FACTS, 'fact')} more; --json has all."
    if num_own:
        yield f"Settings and packages that only one of the frameworks has: {num_own}; --json has all."


def describe_no_difference(document: CompareDocument) -> str:
    """Return why no difference of the environments is listed."""
    return NO_DIFFERENCE if document.environments_known else NO_ENVIRONMENT


def describe_hardware(differences: Sequence[EnvironmentDifference]) -> str:
    """Return in one line what hardware differs: `GPU (Tesla T4 / NVIDIA L4)`."""
    return ", ".join(f"{one.fact} ({_join(one.a)} / {_join(one.b)})" for one in differences if one.is_hardware)


def make_cell_table(document: CompareDocument, cells: Sequence[CellComparison]) -> Table:
    """Return a line per cell: both values, the ratio with its interval, the floor, the verdict and its reason.

    The interval is the one that a difference is stated by, or that of the ratio alone where none was tested. Where
    there is a floor, the one that is held against it stands there too.
    """
    rows = pd.DataFrame([cell.model_dump() for cell in cells[:MAX_LISTED]])
    for end in ("low", "high"):
        rows[f"joint_{end}"] = rows[f"joint_{end}"].astype("float64").fillna(rows[f"ratio_{end}"].astype("float64"))
    rows["words"] = [_describe_verdict(cell, document) for cell in cells[:MAX_LISTED]]
    rows["remarks"] = ["; ".join(filter(None, [cell.reason, *cell.notes])) for cell in cells[:MAX_LISTED]]
    metric = METRICS[document.metric.name]
    unit = _choose_unit(metric.unit, rows)
    alone = [(ALONE, "ratio")] if rows["floor"].notna().any() else []
    intervals = [("95 % interval", "joint"), *alone] if metric.has_intervals else []
    columns = [
        text_column("cell", "label"),
        *(_make_name_columns() if len({(cell.name_a, cell.name_b) for cell in cells}) > 1 else []),
        number_column("A", "value_a", unit, priority=4),
        number_column("B", "value_b", unit, priority=5),
        ratio_column("B / A", "ratio", RATIO),
        *(ratio_interval_column(title, name, RATIO) for title, name in intervals),
        *([_make_floor_column()] if rows["floor"].nunique() > 1 else []),
        text_column("verdict", "words"),
        text_column("on", "scope", priority=2, is_optional=True),
        replace(text_column("note", "remarks", is_optional=True), is_note=True),
    ]
    others = len(cells) - len(rows)
    remark = f"{count_things(others, 'cell')} more; --json has all." if others else ""
    return make_table(f"Cells: {document.metric.title}", columns, rows, remark=remark)


def _describe_verdict(cell: CellComparison, document: CompareDocument) -> str:
    return ": ".join(filter(None, [name_verdict(cell.verdict, document), cell.longer]))


def list_group_lines(document: CompareDocument) -> Iterator[str]:
    """Yield what is found of each group of cells: their geometric mean is known better than any of them."""
    for group in document.together:
        yield describe_group(group, document)


def describe_group(group: GroupComparison, document: CompareDocument) -> str:
    """Return the ratio over a group of cells in a sentence, with the intervals that its verdict is read from."""
    interval, floor = " to ".join(format_ratios(group.joint_low, group.joint_high)), ""
    if group.floor is not None:
        alone = " to ".join(format_ratios(group.ratio_low, group.ratio_high))
        interval, floor = f"{interval}; {ALONE} {alone}", f", floor {format_floor(group.floor)}"
    label = f"{group.label[0].upper()}{group.label[1:]} together (geometric mean)"
    return f"{label}: {format_ratio(group.ratio)} ({interval}){floor}: {name_verdict(group.verdict, document)}."


def list_unpaired_lines(document: CompareDocument) -> Iterator[str]:
    """Yield the cells without a partner, and those with several."""
    for side, cells in (("A", document.only_in_a), ("B", document.only_in_b)):
        if cells:
            yield f"Only in {side}, {count_things(len(cells), 'cell')}:"
        yield from (f"  {_describe_unpaired(cell)}" for cell in cells[:MAX_LISTED])
        if len(cells) > MAX_LISTED:
            yield f"  and {len(cells) - MAX_LISTED} more; --json has all"
    for one in document.ambiguous:
        differ = ", ".join(f"{name} ({', '.join(values)})" for name, values in one.differ_in.items())
        yield (
            f"Not unique: {count_things(len(one.cell_ids), 'cell')} of {one.side} like {one.label} fit the same cell "
            f"and differ in {differ}; narrow it with --{one.side.lower()} KEY=VALUE."
        )


def _describe_unpaired(cell: UnpairedCell) -> str:
    return f"{cell.label} ({cell.nearest})" if cell.nearest else cell.label


def _make_name_columns() -> list[Column]:
    """Return the columns of what the sides are, where that differs from pair to pair."""
    return [text_column("A is", "name_a", priority=6), text_column("B is", "name_b", priority=6)]


def _make_floor_column() -> Column:
    return Column(
        title="floor",
        sources=("floor",),
        format=lambda floor: NOT_THERE if pd.isna(floor) else format_floor(float(floor)),
        align="right",
        priority=3,
    )


def format_floor(share: float) -> str:
    """Return a relative difference in percent: of 0.087 `8.7 %`."""
    return f"{format_number(share, PERCENT)} %"


def _choose_unit(unit: Unit, rows: pd.DataFrame) -> Unit:
    if unit is not MIB:
        return unit
    return choose_memory_unit(value for name in ("value_a", "value_b") for value in rows[name].dropna())


def _join(values: Sequence[str]) -> str:
    """Return the values in one text, shortened: a side can have a hundred hosts, and a setting any length."""
    if not values:
        return "not recorded"
    short = [value if len(value) <= MAX_VALUE_LETTERS else f"{value[:MAX_VALUE_LETTERS]}..." for value in values]
    others = len(short) - MAX_VALUES
    return ", ".join(short) if others <= 0 else f"{', '.join(short[:MAX_VALUES])} and {others} more"
