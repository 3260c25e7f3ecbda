"""Say what stands against comparing two cells, on which machines they ran, and compute their ratio accordingly.

Machines of one kind are not equally fast. A ratio from one machine is a ratio of that machine; one between two machines
holds the difference of the machines too. Only where several machines ran both sides does the interval hold it.

A side is a row of `summarize_cells`, or one that says as much of a cell.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

import pandas as pd

from collector.results.cell_repeats import read_measured
from collector.results.frames import Row
from collector.results.hosts import drop_build
from collector.statistics import Estimate, divide
from collector.units import join_some

# A note names so many machines of a side, and counts the others.
MAX_NAMED = 3
SIDES = ("subject", "reference")
ACROSS = "across machines"
DIFFERENT_BY_NATURE = ("device", "num_gpus")
"""Fields whose values cannot have the same machine: a GPU and a CPU, one GPU and several."""
Obstacle = Literal["", "failed", "hardware", "version", "unsound", "one-repeat", "machines"]


def describe_places(machines: Iterable[str], hosts: Iterable[str], instance_types: Iterable[str | None]) -> Row:
    """Return the columns of a summary that say where repeats ran; the type of a node may be unknown."""
    names, types = sorted(set(machines)), sorted({kind or "unknown" for kind in instance_types})
    return {
        "num_machines": len(names),
        "machines": "; ".join(names),
        "hostnames": "; ".join(sorted(set(hosts))),
        "instance_types": None if types == ["unknown"] else "; ".join(types),
    }


def find_obstacle(*sides: Row, same_hardware: bool, same_version: bool) -> Obstacle:
    """Return what keeps the ratio of two sides from a verdict, the gravest first; empty where nothing does.

    `same_hardware`, `same_version`: whether the sides have to be equal in it, which excludes different machines too.
    """
    if not all(side["num_ok"] for side in sides):
        return "failed"
    if same_hardware and _differ(sides, "hardware_id"):
        return "hardware"
    if same_version and len({drop_build(side["framework_version"]) for side in sides}) > 1:
        return "version"
    if not all(side["num_sound"] for side in sides):
        return "unsound"
    if any(pd.isna(side["log_standard_error"]) for side in sides):
        return "one-repeat"
    return "machines" if same_hardware and is_confounded(*sides) else ""


def estimate_pair(subject: Row, reference: Row) -> Estimate:
    """Return the subject's step time over the reference's.

    Where both ran on the same machines, and on several, the ratio is taken on each machine; else the sides are
    independent.
    """
    return divide(read_measured(subject), read_measured(reference))


def is_confounded(*sides: Row) -> bool:
    """Return whether a ratio holds a difference of machines of which no interval says how large it is.

    The sides ran on different machines, one of them on a single one. A GPU and a CPU, or one GPU and several, are
    different machines by what they are: the ratio is that of these two.
    """
    is_across = _differ(sides, "machines") and not any(_differ(sides, name) for name in DIFFERENT_BY_NATURE)
    return is_across and min(side["num_machines"] for side in sides) < 2


def describe_scope(*sides: Row) -> str:
    """Return in words on how many machines the ratio rests: `one card`, `across machines, 2 cards a side`.

    On a cluster with the machine type of its nodes: `one card, n1-standard-8`. If the sides are DIFFERENT_BY_NATURE,
    those of one host are not across machines.
    """
    types = ["unknown" if pd.isna(side["instance_types"]) else side["instance_types"] for side in sides]
    named = "" if set(types) == {"unknown"} else " / ".join(dict.fromkeys(types))
    return ", ".join(filter(None, [_describe_machines(sides), named]))


def _describe_machines(sides: Sequence[Row]) -> str:
    is_of_devices = _differ(sides, "device")
    nouns = [_name_unit(side, is_of_devices=is_of_devices) for side in sides]
    counts = [int(side["num_machines"]) for side in sides]
    if not _differ(sides, "machines"):
        return count_machines(counts[0], nouns[0])
    words = " and ".join(map(count_machines, counts, nouns))
    is_one_host = not _differ(sides, "hostnames")
    if is_one_host and (is_of_devices or _differ(sides, "num_gpus")):
        return words if counts != [1, 1] else "one card and its host" if is_of_devices else "one machine"
    if counts[0] == counts[1] and nouns[0] == nouns[1]:
        words = f"{count_machines(counts[0], nouns[0])} a side"
    if nouns == ["card", "card"] and is_one_host and ";" not in sides[0]["hostnames"]:
        words += ", of one host"
    return f"{ACROSS}, {words}"


def list_machine_notes(sides: Sequence[Row], names: Sequence[str]) -> list[str]:
    """Return what a reader must know of the machines of a pair: that they differ, and what the interval rests on."""
    notes = []
    if _describe_machines(sides).startswith(ACROSS):
        machines = (join_some(side["machines"].split("; "), MAX_NAMED) for side in sides)
        named = "; ".join(f"{name} on {own}" for name, own in zip(names, machines, strict=True))
        notes.append(f"{ACROSS}: {named}")
        found = {words for side in sides for words in (side["machine_deviations"] or "").split("; ") if words}
        if found:
            notes.append(f"by their calibration, against others of the type: {', '.join(sorted(found))}")
    if max(side["num_machines"] for side in sides) > 1:
        how = "the mean of each" if _differ(sides, "machines") else "its ratio on each"
        notes.append(f"the machine is a random effect: the interval is from {how}")
    return notes


def count_machines(count: int, noun: str) -> str:
    """Return `one card`, `3 cards`."""
    return f"one {noun}" if count == 1 else f"{count} {noun}s"


def _name_unit(side: Row, *, is_of_devices: bool) -> str:
    """Return what is counted as a machine of a side: a card, the host of a CPU cell, or a host with several cards."""
    if side["device"] == "gpu" and side["num_gpus"] == 1:
        return "card"
    return "host" if is_of_devices else "machine"


def _differ(sides: Sequence[Row], name: str) -> bool:
    one, other = (side[name] for side in sides)
    return bool(one != other)
