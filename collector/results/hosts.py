"""Tell machines apart that have one host name, and relate the results of CPU cells to one peak per host.

The shares of a column have one denominator: each process measures the host's matrix product for itself, at the clock
that it happened to find, and the highest of all figures of a host, in a precision and with a number of threads, is the
host's peak of the run. The rule by which hosts are known and its reasons: docs/decisions/0043-machines.md.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd

from bench.schema import Environment, hash_text
from collector.cell_words import FRAMEWORK_NAMES
from collector.results.frames import list_rows
from collector.statistics import join_overlapping
from collector.units import GIB, NOT_THERE, PERCENT, choose_rate_unit, count_things, format_number

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


_Marks = frozenset[Boot | str]
"""What recognises a host: its boots, ids that outlive a reboot, UUIDs of cards. Places that share one are on it."""


def _describe_marks(marks: _Marks) -> str:
    """Return `boot 1a2b3c4d of 2026-11-21 22:28:26`, the host's first boot; an id where no boot is known."""
    boots = [mark for mark in marks if isinstance(mark, tuple)]
    if not boots:
        return f"id {min(mark for mark in marks if isinstance(mark, str))[:_NUM_DIGITS]}"
    boot_id, booted_at = min(boots, key=lambda boot: (str(boot[1]), boot[0]))
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
    marks: dict[Place, _Marks] = {}
    for place in places:
        own = [boots[place.boot_id, place.booted_at]] if place.boot_id else []
        marks[place] = frozenset([*own, *_split(place.lasting_ids), *_split(place.gpu_uuid)])
    hosts = join_overlapping(marks[place] for place in places if place.is_recorded)
    if hostname is None or not hosts or (len(hosts) == 1 and not _names_other_cards(places)):
        return [(place, hostname) for place in places]
    named = [(f"{hostname} ({_describe_marks(host)})", host) for host in hosts]

    def find_name(place: Place) -> str:
        found = [name for name, host in named if host & marks[place]]
        return found[0] if len(found) == 1 else f"{hostname} (boot not recorded)"

    return [(place, find_name(place)) for place in places]


def _names_other_cards(places: Iterable[Place]) -> bool:
    """Return whether a place without an identity has cards of which none was seen where an identity was recorded."""
    cards = [(place.is_recorded, frozenset(_split(place.gpu_uuid))) for place in places]
    known = frozenset(card for is_recorded, own in cards if is_recorded for card in own)
    return bool(known) and any(own and not own & known for is_recorded, own in cards if not is_recorded)


def _identify_boots(found: Collection[Boot]) -> dict[Boot, Boot]:
    """Map each boot to its first record: times of one boot id within MAX_CLOCK_STEP of each other are one boot."""
    first: dict[Boot, Boot] = {boot: boot for boot in found}
    timed = sorted((boot_id, booted_at) for boot_id, booted_at in found if booted_at is not None)
    for before, boot in pairwise(timed):
        if before[0] == boot[0] and boot[1] - before[1] <= MAX_CLOCK_STEP:
            first[boot] = first[before]
    return first


def _split(ids: str | None) -> list[str]:
    return ids.split(_SEPARATOR) if ids else []


def name_machines(results: pd.DataFrame) -> pd.DataFrame:
    """Return the results with `host` and `machine` filled in: two rows of one host have the same name there.

    What a row's host is called depends on all rows: one may hold the id that shows two others to be of one host.
    `results`: rows with the columns of Place; of several runs together, where their machines are to be compared.
    """
    numbers = results.groupby(list(Place._fields), dropna=False, observed=True, sort=False).ngroup()
    places = [Place(**row) for row in list_rows(results[list(Place._fields)].drop_duplicates())]
    hosts = name_hosts(places)
    named = [(hosts[place], (host := hosts[place]) and name_machine(host, place.gpu_uuid)) for place in places]
    names = pd.DataFrame(named, columns=["host", "machine"], dtype="str").loc[numbers].set_axis(results.index)
    return results.assign(host=names["host"], machine=names["machine"])


MACHINE_FACTS = (
    *("vendor", "product", "is_virtual", "num_physical_cores", "num_sockets", "num_numa_nodes", "threads_per_core"),
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
    facts: dict[str, Any] = {
        "cpu_model": environment.cpu_model,
        "num_visible_cores": environment.num_visible_cores,
        "cpu_quota_cores": environment.cpu_quota_cores,
        "num_threads": environment.num_threads,
        "cpu_governor": environment.cpu_governor,
        "gpu_name": environment.gpu.name if environment.gpu else None,
        "driver_version": environment.gpu.driver_version if environment.gpu else None,
    }
    # What else can change a time, and is known: older results without it keep their ids. Power limits are not in it: a
    # lowered one makes the measurement `throttled`, and some machines move theirs all the time. Nor is the generation
    # of the PCIe link at the moment, which an idle GPU lowers.
    for part, names in ((environment.machine, MACHINE_FACTS), (environment.gpu, GPU_FACTS)):
        known = {} if part is None else part.model_dump(include=set(names))
        facts |= {name: value for name, value in known.items() if value not in (None, ())}
    return facts


def describe_environment(environment: Environment) -> dict[str, str]:
    """Return property to text: each field by its name, of machine and GPU too, then packages and settings."""
    own = environment.model_dump(exclude={"hostname", "identity", "machine", "gpus", "versions", "settings"})
    parts = {
        "": own,
        "machine ": environment.machine.model_dump() if environment.machine else {},
        "GPU ": environment.gpu.model_dump(exclude={"uuid"}) if environment.gpu else {},
        "package ": dict(sorted(environment.versions.items())),
        "setting ": dict(sorted(environment.settings.items())),
    }
    return {
        kind + (name if kind in ("package ", "setting ") else name.removesuffix("_bytes").replace("_", " ")): _show(
            name, value
        )
        for kind, fields in parts.items()
        for name, value in fields.items()
    }


def _show(name: str, value: Any) -> str:
    if value is None or value == ():
        return NOT_THERE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if name.endswith("_bytes"):
        return f"{format_number(value, GIB)} GiB"
    return shorten_cudnn(value) if name == "cudnn_version" else str(value)


CUDNN_9 = 90_000
"""From cuDNN 9 on, cudnn_version.h has major * 10,000 + minor * 100 + patch as its number; before, major * 1,000."""


def shorten_cudnn(version: str) -> str:
    """Return a version of cuDNN as `9.19.0`, be it recorded as 91900, 9.19.0.56 or 9.19.0; a major one as it is."""
    if version.isdecimal() and int(version) >= 1000:
        number = int(version)
        major, rest = divmod(number, 10_000 if number >= CUDNN_9 else 1000)
        return f"{major}.{rest // 100}.{rest % 100}"
    return ".".join(version.split(".")[:3])


def drop_build(version: str | None) -> str | None:
    """Return a version without what names its build: `2.11.0` for `2.11.0+cu128`."""
    return None if pd.isna(version) else str(version).partition("+")[0]


def _hash_document(document: dict[str, Any]) -> str:
    return hash_text(json.dumps(document, sort_keys=True))


# The framework of figures in results that do not hold a HostPeak: those were the highest so far, of all frameworks.
ALL_FRAMEWORKS = "all frameworks"
# As bench.verdicts.checks.MAX_HOST_DRIFT: what identical runs differ by anyway.
MAX_DRIFT = 0.10
HOST_COLUMNS = ["host", "cpu_model", "precision", "num_threads"]
PEAK_COLUMNS = [
    *("host_framework", "cpu_product_flops_per_second", "peak_flops_per_second", "host_theoretical_flops_per_second")
]
UNKNOWN = {"cpu_model": "", "num_threads": 0}
"""What is not known is the same for all results of a host: a missing value equals none."""


def relate_to_hosts(counted: pd.DataFrame, attempts: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the attempts that count with shares of their host's peak and the notes on them, and the hosts' products.

    The latter with a row for each framework, as each process multiplies in its own: the lowest and the highest rate.

    A host's peak is the highest figure of all `attempts`. A CPU's roofline is that of arithmetic alone. Results of
    GPUs, and of hosts without a peak, stay as they are.
    """
    on_cpu = attempts.loc[(attempts["device"] == "cpu") & attempts["host"].notna(), [*HOST_COLUMNS, *PEAK_COLUMNS]]
    # Results that were made before they held a HostPeak hold the peak of their time.
    is_own = on_cpu["host_framework"].notna()
    on_cpu = on_cpu.fillna(UNKNOWN).assign(
        framework=on_cpu["host_framework"].fillna(ALL_FRAMEWORKS),
        rate=on_cpu["cpu_product_flops_per_second"].where(is_own, on_cpu["peak_flops_per_second"]),
        theoretical=on_cpu["host_theoretical_flops_per_second"].where(is_own),
    )
    by_host = on_cpu.groupby(HOST_COLUMNS, sort=False)
    products = on_cpu[on_cpu["rate"] > 0].groupby([*HOST_COLUMNS, "framework"], sort=False)["rate"]
    rates = products.agg(low="min", high="max", num_results="size").reset_index()
    calculated = by_host["theoretical"].max().rename("high").reset_index().assign(source="cores x width x clock")
    peaks = pd.concat([calculated, rates.assign(source="matrix product in " + rates["framework"])], ignore_index=True)
    peaks = peaks[peaks["high"] > 0].sort_values("high", ascending=False, kind="stable").drop_duplicates(HOST_COLUMNS)
    peaks = peaks.merge(by_host.size().rename("number").reset_index(), on=HOST_COLUMNS)
    found = counted[HOST_COLUMNS].fillna(UNKNOWN).merge(peaks, on=HOST_COLUMNS, how="left")
    return _relate(counted, found.set_index(counted.index)), rates


def _relate(counted: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    is_related = (counted["device"] == "cpu") & found["high"].notna()
    is_related &= counted["flops_per_step"].notna() & counted["center_step_seconds"].notna()
    if not is_related.any():
        return counted
    counted, found = counted.copy(), found[is_related]
    rows = counted[is_related]
    peaks = found["high"]
    least_seconds = rows["flops_per_step"].astype("float64") / peaks
    shares = rows["achieved_flops_per_second"] / peaks
    related: dict[str, Any] = {
        "peak_flops_per_second": peaks,
        "peak_source": [
            f"{source}; the highest of {number:.0f} results on this host"
            for source, number in zip(found["source"], found["number"], strict=True)
        ],
        "share_of_peak": shares,
        "min_step_seconds": least_seconds,
        "bound": "arithmetic",
        "share_of_roofline": least_seconds / rows["center_step_seconds"],
        "notes": _add_notes(rows, shares),
    }
    for name, values in related.items():
        counted.loc[is_related, name] = values
    return counted


def _add_notes(rows: pd.DataFrame, shares_of_peak: "pd.Series[float]") -> "pd.Series[str]":
    """Return the notes, with one more where the process, or the run's peak, says that it was faster than the host.

    The verdict stays: it was passed on what its process knew, and the run's peak is at least as high.
    """
    operations = rows["flops_per_step"].astype("float64")
    shares = shares_of_peak * (rows["least_flops_per_step"].astype("float64") / operations).fillna(1.0)
    is_over = (shares > 1) | rows["fault_verdicts"].fillna("").str.split().map(lambda faults: "over-peak" in faults)
    is_over &= rows["verdict"].notna() & (operations > 0)
    own = shares.map(
        "{:.0%} of the host's peak of this run, by the fewest operations that known algorithms need".format
    )
    return rows["notes"].mask(is_over, (rows["notes"] + "; ").fillna("") + own)


def describe_drift(drift: Any) -> str:
    unit = choose_rate_unit([drift.high])
    framework = FRAMEWORK_NAMES.get(drift.framework, drift.framework)
    return (
        f"matrix products of {framework} ({drift.precision}, {count_things(drift.num_threads, 'thread')}) ran at "
        f"{format_number(drift.low, unit)} to {format_number(drift.high, unit)} {unit.label} in {drift.num_results} "
        f"results on the CPU (the faster of two in each), {measure_drift(drift)} apart"
    )


def measure_drift(drift: Any) -> str:
    """Return by how many percent the fastest products exceed the slowest: `20.0 %`."""
    return f"{format_number(drift.high / drift.low - 1, PERCENT)} %"


def list_drifted(products: pd.DataFrame) -> list[Any]:
    """Return the rows of those frameworks and hosts whose speed changed, the widest range first."""
    drifts = products["high"] / products["low"] - 1
    order = drifts[drifts > MAX_DRIFT].sort_values(ascending=False, kind="stable").index
    return list(products.loc[order].itertuples())
