"""Tell machines apart that have one host name, and recognise one that was booted again.

The rule and its reasons: docs/decisions/0043-which-machine.md.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bench.schema import Environment, hash_text

MAX_CLOCK_STEP = timedelta(minutes=1)
"""By so much a clock may be set while its machine runs. A boot that moves by more is another machine's, which was
restored from the same snapshot."""
_SEPARATOR = ", "
_NUM_DIGITS = 8


class Place(NamedTuple):
    """What a result says of the machine that it was measured on. None: not recorded, or there is none."""

    hostname: str | None
    boot_id: str | None
    booted_at: datetime | None
    lasting_ids: str | None
    gpu_uuid: str | None

    @property
    def is_recorded(self) -> bool:
        """Whether more is known of the machine than its name and the cards of the cell."""
        return bool(self.boot_id or self.lasting_ids)


Boot = tuple[str, datetime | None]
"""The id of a boot, and when it began."""


class _Marks(NamedTuple):
    """What recognises a host: places that share one of these are on it."""

    boots: frozenset[Boot]
    others: frozenset[str]
    """Ids that outlive a reboot, and UUIDs of cards."""

    def overlaps(self, other: "_Marks") -> bool:
        return bool(self.boots & other.boots or self.others & other.others)

    def describe(self) -> str:
        """Return `boot 1a2b3c4d of 2026-11-21 22:28:26`, the host's first boot; an id where no boot is known."""
        if not self.boots:
            return f"id {min(self.others)[:_NUM_DIGITS]}"
        boot_id, booted_at = min(self.boots, key=lambda boot: (str(boot[1]), boot[0]))
        return f"boot {boot_id[:_NUM_DIGITS]}" + (f" of {booted_at:%Y-%m-%d %H:%M:%S}" if booted_at else "")


def join_ids(ids: Iterable[str]) -> str | None:
    """Return several ids as the text of one column; None without any."""
    return _SEPARATOR.join(sorted(ids)) or None


def name_machine(host: str, gpu_uuid: str | None) -> str:
    """Return the name of the machine: of a CPU cell its host, of a GPU cell its host and the UUIDs of its GPUs.

    Two cards of one model are not equally fast, so each card is a machine of its own.
    """
    return " ".join([host, *_split(gpu_uuid)])


def name_hosts(places: Collection[Place]) -> dict[Place, str | None]:
    """Return the name of each place's host: its host name, and the boot where the name stands for several hosts.

    Places of one host name are on one host if they share the boot, an id that outlives a reboot, or a card. What was
    recorded without a boot or an id is on the host of its name where only one is known and no other card is, or on the
    one with its card.
    """
    by_name: defaultdict[str | None, list[Place]] = defaultdict(list)
    for place in places:
        by_name[place.hostname].append(place)
    return {place: host for name, own in by_name.items() for place, host in _name_hosts_of(name, own)}


def _name_hosts_of(hostname: str | None, places: Sequence[Place]) -> Iterable[tuple[Place, str | None]]:
    boots = _identify_boots({(place.boot_id, place.booted_at) for place in places if place.boot_id})
    marks = {place: _list_marks(place, boots) for place in places}
    hosts = _join_marks([marks[place] for place in places if place.is_recorded])
    if hostname is None or not hosts or (len(hosts) == 1 and not _names_other_cards(places)):
        return [(place, hostname) for place in places]
    named = [(f"{hostname} ({host.describe()})", host) for host in hosts]

    def find_name(place: Place) -> str:
        found = [name for name, host in named if host.overlaps(marks[place])]
        return found[0] if len(found) == 1 else f"{hostname} (boot not recorded)"

    return [(place, find_name(place)) for place in places]


def _names_other_cards(places: Iterable[Place]) -> bool:
    """Return whether a place without an identity has cards of which none was seen where an identity was recorded."""
    cards = [(place.is_recorded, frozenset(_split(place.gpu_uuid))) for place in places]
    known = frozenset(card for is_recorded, own in cards if is_recorded for card in own)
    return bool(known) and any(own and not own & known for is_recorded, own in cards if not is_recorded)


def _identify_boots(found: Collection[Boot]) -> dict[Boot, Boot]:
    """Return the boot that each was: beginnings of one id that are at most MAX_CLOCK_STEP apart are one boot's."""
    first: dict[Boot, Boot] = {boot: boot for boot in found}
    timed = sorted((boot_id, booted_at) for boot_id, booted_at in found if booted_at is not None)
    for before, boot in pairwise(timed):
        if before[0] == boot[0] and boot[1] - before[1] <= MAX_CLOCK_STEP:
            first[boot] = first[before]
    return first


def _list_marks(place: Place, boots: Mapping[Boot, Boot]) -> _Marks:
    return _Marks(
        boots=frozenset([boots[place.boot_id, place.booted_at]] if place.boot_id else []),
        others=frozenset([*_split(place.lasting_ids), *_split(place.gpu_uuid)]),
    )


def _join_marks(found: Iterable[_Marks]) -> list[_Marks]:
    hosts: list[_Marks] = []
    for marks in found:
        same = [marks, *(host for host in hosts if host.overlaps(marks))]
        joined = _Marks(
            boots=frozenset(boot for one in same for boot in one.boots),
            others=frozenset(mark for one in same for mark in one.others),
        )
        hosts = [host for host in hosts if not host.overlaps(marks)] + [joined]
    return hosts


def _split(ids: str | None) -> list[str]:
    return ids.split(_SEPARATOR) if ids else []


def name_machines(results: pd.DataFrame) -> pd.DataFrame:
    """Return the results with `host` and `machine` filled in: two rows of one host have the same name there.

    What a row's host is called depends on all rows: one may hold the id that shows two others to be of one host.
    `results`: rows with the columns of Place; of several runs together, where their machines are to be compared.
    """
    columns = zip(("host", "machine"), _name_rows(results[list(Place._fields)]), strict=True)
    return results.assign(**{name: pd.Series(values, results.index, "str") for name, values in columns})


def name_machines_of_rows(rows: Iterable[dict[str, Any]]) -> None:
    """Set `host` and `machine` of the rows as `name_machines` does. The rows have the columns of Place."""
    places = [(row, Place(*(row[name] for name in Place._fields))) for row in rows]
    hosts = name_hosts({place for _, place in places})
    for row, place in places:
        host = hosts[place]
        row["host"], row["machine"] = host, None if host is None else name_machine(host, place.gpu_uuid)


def list_places(results: pd.DataFrame) -> list[Place]:
    """Return the places of the rows, each once, in the order in which they first occur."""
    rows = results[list(Place._fields)].drop_duplicates()
    columns = [_list_known(rows[name]) for name in Place._fields]
    return [Place(*values) for values in zip(*columns, strict=True)]


def _list_known(column: "pd.Series[Any]") -> list[Any]:
    """Return the values of a column, None in the place of those that are missing."""
    return [value if is_known else None for value, is_known in zip(column, column.notna(), strict=True)]


def _name_rows(rows: pd.DataFrame) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
    """Return the host and the machine of each row; None where its host name is missing."""
    numbers = rows.groupby(list(Place._fields), dropna=False, observed=True, sort=False).ngroup().to_numpy()
    places = list_places(rows)
    found = name_hosts(places)
    hosts = [found[place] for place in places]
    machines = [
        None if host is None else name_machine(host, place.gpu_uuid) for host, place in zip(hosts, places, strict=True)
    ]
    return np.array(hosts, dtype=object)[numbers], np.array(machines, dtype=object)[numbers]


MACHINE_FACTS = (
    "vendor",
    "product",
    "is_virtual",
    "num_physical_cores",
    "num_sockets",
    "num_numa_nodes",
    "threads_per_core",
    "instruction_sets",
)
GPU_FACTS = ("ecc_enabled", "pcie_width", "max_pcie_generation", "max_pcie_width")


def identify_environment(environment: Environment) -> str:
    """Return 8 hex digits of hardware, driver, Python, package versions, settings and image."""
    software = {
        "python_version": environment.python_version,
        "versions": environment.versions,
        "settings": environment.settings,
        "image": environment.image,
        "cuda_version": environment.gpu.cuda_version if environment.gpu else None,
        "cudnn_version": environment.gpu.cudnn_version if environment.gpu else None,
    }
    return _hash_document(describe_hardware(environment) | software)


def identify_hardware(environment: Environment) -> str:
    """Return 8 hex digits of CPU model, cores, quota, threads, governor, machine, GPU model, its link and driver."""
    return _hash_document(describe_hardware(environment))


def describe_hardware(environment: Environment) -> dict[str, Any]:
    """Return what must be equal for two frameworks to be compared on it."""
    return {
        "cpu_model": environment.cpu_model,
        "num_visible_cores": environment.num_visible_cores,
        "cpu_quota_cores": environment.cpu_quota_cores,
        "num_threads": environment.num_threads,
        "cpu_governor": environment.cpu_governor,
        "gpu_name": environment.gpu.name if environment.gpu else None,
        "driver_version": environment.gpu.driver_version if environment.gpu else None,
        **_list_facts(environment),
    }


def _list_facts(environment: Environment) -> dict[str, Any]:
    """Return what else of machine and GPU can change a time, and is known: older results without it keep their ids.

    Power limits are not in it: a lowered one makes the measurement `throttled`, and some machines move theirs all the
    time. Nor is the generation of the PCIe link at the moment, which an idle GPU lowers.
    """
    facts: dict[str, Any] = {}
    if environment.machine is not None:
        facts |= environment.machine.model_dump(include=set(MACHINE_FACTS))
    if environment.gpu is not None:
        facts |= environment.gpu.model_dump(include=set(GPU_FACTS))
    return {name: value for name, value in facts.items() if value not in (None, ())}


def drop_build(version: str | None) -> str | None:
    """Return a version without what names its build: `2.11.0` for `2.11.0+cu128`."""
    return None if pd.isna(version) else str(version).partition("+")[0]


def _hash_document(document: dict[str, Any]) -> str:
    return hash_text(json.dumps(document, sort_keys=True))
