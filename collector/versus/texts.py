"""Put the parts of a comparison into words and tables, for the terminal and for Markdown alike."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd

from collector.facts import count_things
from collector.labels import DEVICE_NAMES
from collector.machines import ACROSS
from collector.tables.columns import interval_column, number_column, text_column
from collector.tables.table import MAX_LISTED, Column, Table, make_table
from collector.units import MIB, NOT_THERE, PERCENT, RATIO, Unit, choose_memory_unit, format_number
from collector.versus.document import (
    CellComparison,
    CompareDocument,
    EnvironmentDifference,
    GroupComparison,
    NoiseDescription,
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
NO_INTERVALS = (
    "Peak memory has no interval: its repeats are mostly equal, and else differ by whole blocks. The largest repeats "
    "of both sides are compared; the floor of a cell is the most that repeats of a side, or identical runs, differ by."
)


def name_verdict(verdict: str, document: CompareDocument) -> str:
    """Return a verdict in the words of the metric: `slower`, `within the floor`."""
    metric = document.metric
    words = {"worse": metric.worse, "better": metric.better, "same": "within the floor", "fails": "fails in B"}
    return words.get(verdict, verdict)


def sort_cells(document: CompareDocument) -> list[CellComparison]:
    """Return the cells with those first that call for attention, in each verdict the largest ratio first."""
    return sorted(document.cells, key=lambda cell: (ORDER.index(cell.verdict), -(cell.ratio or 0.0)))


def make_difference_table(document: CompareDocument) -> Table:
    """Return the facts of the environments that differ, MAX_FACTS at the most."""
    shown = document.differences[:MAX_FACTS]
    rows = pd.DataFrame(
        {
            "fact": [one.fact for one in shown],
            "a": [_join(one.a) for one in shown],
            "b": [_join(one.b) for one in shown],
        }
    )
    others = len(document.differences) - len(shown)
    remark = f"{count_things(others, 'fact')} more; --json has all." if others else ""
    columns = [text_column("differs", "fact"), text_column("A", "a"), text_column("B", "b")]
    return make_table("Environments", columns, rows, remark=remark)


def describe_no_difference(document: CompareDocument) -> str:
    """Return why no difference of the environments is listed."""
    return NO_DIFFERENCE if document.environments_known else NO_ENVIRONMENT


def describe_hardware(differences: Sequence[EnvironmentDifference]) -> str:
    """Return in one line what hardware differs: `GPU (Tesla T4 / NVIDIA L4)`."""
    return ", ".join(f"{one.fact} ({_join(one.a)} / {_join(one.b)})" for one in differences if one.is_hardware)


def make_cell_table(document: CompareDocument, cells: Sequence[CellComparison]) -> Table:
    """Return a line per cell: both values, the ratio with its interval, the floor, the verdict and its reason."""
    rows = pd.DataFrame([cell.model_dump() for cell in cells[:MAX_LISTED]])
    rows["words"] = [name_verdict(cell.verdict, document) for cell in cells[:MAX_LISTED]]
    rows["remarks"] = ["; ".join(filter(None, [cell.reason, *cell.notes])) for cell in cells[:MAX_LISTED]]
    metric = METRICS[document.metric.name]
    unit = _choose_unit(metric.unit, rows)
    columns = [
        text_column("cell", "label"),
        number_column("A", "value_a", unit, priority=4),
        number_column("B", "value_b", unit, priority=5),
        number_column("ratio", "ratio", RATIO),
        *([interval_column("95 % interval", "ratio_low", "ratio_high", RATIO)] if metric.has_intervals else []),
        _make_floor_column(),
        text_column("verdict", "words"),
        text_column("on", "scope", priority=2, is_optional=True),
        replace(text_column("note", "remarks", is_optional=True), is_note=True),
    ]
    others = len(cells) - len(rows)
    remark = f"{count_things(others, 'cell')} more; --json has all." if others else ""
    return make_table(f"Cells: {document.metric.title}", columns, rows, remark=remark)


def list_method_lines(document: CompareDocument) -> Iterator[str]:
    """Yield how to read the ratios, and what each floor comes from."""
    yield document.metric.reading
    if not METRICS[document.metric.name].has_intervals:
        yield NO_INTERVALS
    for noise in document.noise:
        yield describe_noise(noise)


def describe_noise(noise: NoiseDescription) -> str:
    """Return the floor of one kind of cells, and its source, in a sentence."""
    where = " of one run" if noise.is_same_run else "" if noise.is_same_machine else f" {ACROSS}"
    tenants = " with tenants" if noise.is_shared else ""
    begin = f"Floor {_format_percent(noise.floor)} for {DEVICE_NAMES[noise.device]} cells{tenants}{where}: "
    if noise.source == "measured":
        runs = f"{', '.join(noise.run_ids[:MAX_VALUES])}{' ...' if len(noise.run_ids) > MAX_VALUES else ''}"
        cells = count_things(noise.num_cells, "cell")
        return f"{begin}measured, {count_things(len(noise.run_ids), 'identical run')} of {cells} ({runs})."
    if noise.source == "given":
        return f"{begin}as given by --floor; no identical runs show what they differ by."
    return (
        f"{begin}the default, since the store has no two identical runs of such cells; a second run of A or B would "
        "measure it (docs/compare.md)."
    )


def list_group_lines(document: CompareDocument) -> Iterator[str]:
    """Yield what is found of each group of cells: their geometric mean is known better than any of them."""
    for group in document.together:
        yield describe_group(group, document)


def describe_group(group: GroupComparison, document: CompareDocument) -> str:
    """Return the ratio over a group of cells in a sentence."""
    ratio, low, high = (format_number(value, RATIO) for value in (group.ratio, group.ratio_low, group.ratio_high))
    floor = _format_percent(group.floor)
    return (
        f"{group.label[0].upper()}{group.label[1:]} together: {ratio} ({low} to {high}), floor {floor}: "
        f"{name_verdict(group.verdict, document)}."
    )


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


def _make_floor_column() -> Column:
    return Column(
        title="floor",
        sources=("floor",),
        format=lambda floor: NOT_THERE if pd.isna(floor) else _format_percent(float(floor)),
        align="right",
        priority=3,
    )


def _format_percent(share: float) -> str:
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
