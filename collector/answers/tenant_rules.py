"""What tenants of one device get together, and how evenly."""

from collections.abc import Sequence

import pandas as pd

from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Said
from collector.answers.ratios import Family, JudgedRatio, find_span, state_ratios
from collector.labels import SHARING_NAMES
from collector.machines import are_comparable, count_machines
from collector.ratio_verdicts import NO_DIFFERENCE
from collector.results.frames import Row, list_rows
from collector.statistics import Estimate
from collector.units import format_significant

ANCHOR = name_anchor("Sharing: all tenants of a device together")
READ_COLUMNS = ("num_sound", "num_counted", "machines", "num_machines")


def find_tenants(analysis: Analysis) -> list[Said]:
    """Return for each way of sharing how often tenants together get more than one alone, and how much."""
    rows = list_usable_rows(analysis)
    size = int(analysis.sharing.loc[analysis.sharing["role"] == "cell", "p_value"].notna().sum())
    ways = sorted({row["sharing"] for row in rows}, key=list(SHARING_NAMES).index)
    groups = [(way, [row for row in rows if row["sharing"] == way]) for way in ways]
    said = [_say(way, own, size) for way, own in sorted(groups, key=lambda group: -len(group[1]))]
    return [one for one in said if one is not None]


def list_usable_rows(analysis: Analysis) -> list[Row]:
    """Return a row of `tabulate_sharing` for each cell whose tenants can be held against the same work alone.

    Both have a repeat under sound conditions and an interval, and ran on the same machines or each on several.
    """
    return [row for row, sides in _list_tested_rows(analysis) if all(map(_is_sound, sides)) and _is_comparable(*sides)]


def count_confounded_rows(analysis: Analysis) -> int:
    """Return how many tested cells with tenants hold the difference of two machines in their ratio."""
    return sum(not _is_comparable(*sides) for _, sides in _list_tested_rows(analysis))


def _list_tested_rows(analysis: Analysis) -> list[tuple[Row, list[Row]]]:
    """Return the tested cells with tenants, each with its row of the summary and then those of the same work alone."""
    sharing, cells = analysis.sharing, _index_cells(analysis.summary)
    rows = list_rows(sharing[(sharing["role"] == "cell") & sharing["p_value"].notna()])
    keys = zip(sharing["cell_id"], sharing["environment_id"], strict=True)
    alone: dict[tuple[str, str], set[str]] = {}
    for key, cell_id in zip(keys, sharing["alone_cell_id"], strict=True):
        alone.setdefault(key, set()).add(cell_id)
    found = []
    for row in rows:
        key = row["cell_id"], row["environment_id"]
        (own,) = (cell for cell in cells[key[0]] if cell["environment_id"] == key[1])
        sides = [own, *(other for cell_id in alone[key] for other in cells[cell_id])]
        counts = [row["num_counted"], *(side["num_counted"] for side in sides[1:])]
        basis = {"scope": _describe_machines(own), "machines": own["machines"], "num_repeats": find_span(counts)}
        found.append((row | basis, sides))
    return found


def _say(way: str, rows: Sequence[Row], size: int) -> Said | None:
    judged = [_judge(row) for row in rows]
    if not any(one.is_different for one in judged):
        return None
    numbers = sorted({row["tenants"] for row in rows})
    count = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    family = Family(measure="throughput ratio", above="more than one alone", below="less than one alone", size=size)
    opening = f"{count} tenants by {SHARING_NAMES[way]} together"
    return Said(text=state_ratios(opening, judged, family) + _state_fairness(rows), anchor=ANCHOR)


def _state_fairness(rows: Sequence[Row]) -> str:
    """Return how unevenly tenants shared in the least even repeat; empty where no cell has several tenants."""
    known = [row for row in rows if not pd.isna(row["lowest_jain_index"])]
    if not known:
        return ""
    lowest = min(known, key=lambda row: float(row["lowest_jain_index"]))
    return f" Least even repeat: Jain's index {format_significant(lowest['lowest_jain_index'])} ({lowest['label']})."


def _judge(row: Row) -> JudgedRatio:
    return JudgedRatio(
        name=row["label"],
        ratio=Estimate(
            center=row["aggregate_ratio"],
            log_standard_error=row["aggregate_log_standard_error"],
            degrees_of_freedom=row["aggregate_degrees_of_freedom"],
        ),
        is_different=row["adjusted_verdict"] != NO_DIFFERENCE,
        scope=row["scope"],
        machines=frozenset([row["machines"]]),
        num_repeats=row["num_repeats"],
    )


def _index_cells(summary: pd.DataFrame) -> dict[str, list[Row]]:
    """Return for each cell's id its rows of the summary, one for each environment that the cell ran in."""
    found: dict[str, list[Row]] = {}
    for row in list_rows(summary[["cell_id", "environment_id", "device", *READ_COLUMNS]]):
        found.setdefault(row["cell_id"], []).append(row)
    return found


def _is_sound(row: Row) -> bool:
    return bool(row["num_sound"] > 0)


def _is_comparable(shared: Row, *alone: Row) -> bool:
    """Return whether a difference of machines is not in the ratio to those alone, or in its interval."""
    return all(are_comparable(shared, one) for one in alone)


def _describe_machines(row: Row) -> str:
    return count_machines(row["num_machines"], "card" if row["device"] == "gpu" else "machine")
