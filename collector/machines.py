"""Say on which machines the two sides of a pair ran, and compute their ratio accordingly.

Machines of one kind are not equally fast. A ratio from one machine is a ratio of that machine; one between two machines
holds the difference of the machines too. Only where several machines ran both sides does the interval hold it.
"""

from typing import Literal

from collector.results.cell_repeats import read_measured
from collector.results.frames import Row
from collector.statistics import Estimate, divide
from collector.units import join_some

# A note names so many machines of a side, and counts the others.
MAX_NAMED = 3
SIDES = ("subject", "reference")
ACROSS = "across machines"
DIFFERENT_BY_NATURE = ("device", "num_gpus")
"""Fields whose values cannot have the same machine: a GPU and a CPU, one GPU and several."""


def estimate_pair(pair: Row) -> Estimate:
    """Return the subject's step time over the reference's.

    Where both ran on the same machines, and on several, the ratio is taken on each machine; else the sides are
    independent.
    """
    return divide(*(read_measured(pair, f"_{side}") for side in SIDES))


def is_confounded(pair: Row, field: str) -> bool:
    """Return whether a ratio holds a difference of machines of which no interval says how large it is.

    The sides ran on different machines, one of them on a single one. `field`: the one in which the sides differ. A GPU
    and a CPU, or one GPU and several, are different machines by what they are: the ratio is that of these two.
    """
    if field in DIFFERENT_BY_NATURE or _is_same(pair, "machines"):
        return False
    return min(_count(pair, side) for side in SIDES) < 2


def describe_scope(pair: Row, field: str) -> str:
    """Return in words on how many machines the ratio rests: `one card`, `across machines, 2 cards a side`.

    On a cluster with the machine type of its nodes: `one card, n1-standard-8`. `field`: the one in which the sides
    differ. If it is DIFFERENT_BY_NATURE, sides of one host are not across machines.
    """
    return ", ".join(filter(None, [_describe_machines(pair, field), _describe_types(pair)]))


def _describe_machines(pair: Row, field: str) -> str:
    nouns = [_name_unit(pair, side) for side in SIDES]
    counts = [_count(pair, side) for side in SIDES]
    if _is_same(pair, "machines"):
        return count_machines(counts[0], nouns[0])
    sides = " and ".join(map(count_machines, counts, nouns))
    if field in DIFFERENT_BY_NATURE and _is_same(pair, "hostnames"):
        return sides if counts != [1, 1] else "one card and its host" if field == "device" else "one machine"
    if counts[0] == counts[1] and nouns[0] == nouns[1]:
        sides = f"{count_machines(counts[0], nouns[0])} a side"
    if nouns == ["card", "card"] and _is_same(pair, "hostnames") and ";" not in pair["hostnames_subject"]:
        sides += ", of one host"
    return f"{ACROSS}, {sides}"


def _describe_types(pair: Row) -> str:
    """Return the machine types of both sides' nodes, once if they are the same; empty where no side says them."""
    types = [known if isinstance(known := pair[f"instance_types_{side}"], str) else "unknown" for side in SIDES]
    if set(types) == {"unknown"}:
        return ""
    return types[0] if types[0] == types[1] else f"{types[0]} / {types[1]}"


def list_machine_notes(pair: Row, names: dict[str, str], field: str) -> list[str]:
    """Return what a reader must know of the machines of a pair: that they differ, and what the interval rests on."""
    notes = []
    if _describe_machines(pair, field).startswith(ACROSS):
        machines = {side: join_some(pair[f"machines_{side}"].split("; "), MAX_NAMED) for side in SIDES}
        named = "; ".join(f"{names[side]} on {machines[side]}" for side in SIDES)
        notes.append(f"{ACROSS}: {named}")
        found = {words for side in SIDES for words in (pair[f"machine_deviations_{side}"] or "").split("; ") if words}
        if found:
            notes.append(f"by their calibration, against others of the type: {', '.join(sorted(found))}")
    if max(_count(pair, side) for side in SIDES) > 1:
        how = "its ratio on each" if _is_same(pair, "machines") else "the mean of each"
        notes.append(f"the machine is a random effect: the interval is from {how}")
    return notes


def count_machines(count: int, noun: str) -> str:
    """Return `one card`, `3 cards`."""
    return f"one {noun}" if count == 1 else f"{count} {noun}s"


def _name_unit(pair: Row, side: str) -> Literal["card", "machine", "host"]:
    """Return what is counted as a machine of a side: a card, the host of a CPU cell, or a host with several cards."""
    device, num_gpus = (pair.get(f"{name}_{side}", pair.get(name)) for name in ("device", "num_gpus"))
    if device == "gpu" and num_gpus == 1:
        return "card"
    return "host" if "device_subject" in pair else "machine"


def _count(pair: Row, side: str) -> int:
    return int(pair[f"num_machines_{side}"])


def _is_same(pair: Row, name: str) -> bool:
    return bool(pair[f"{name}_subject"] == pair[f"{name}_reference"])
