"""The tables of what is compared: pairs of cells, tenants with cells alone, changes over the nights, and the ranking.

The ranking has of the programs that did the same work on the same machines the fastest, the cheapest, and what is not
told from them. Whether two programs differ is what the table of their comparison says, if one has both; the pairs that
none has, as TensorFlow against JAX, are judged together. So a program that was chosen for its time is only said to be
faster than another where that remains among all pairs of a family.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import pandas as pd

from bench.schema import Environment
from collector import units
from collector.analysis import Analysis
from collector.cell_words import take_images
from collector.changes import RecordedChange, name_changed
from collector.comparisons import (
    DEVICES,
    FRAMEWORKS,
    MODES,
    PRECISIONS,
    SIDES,
    STRONG_SCALING,
    WEAK_SCALING,
    Comparison,
    estimate_pair,
)
from collector.costs.document import CellCost, describe_place
from collector.labels import label_hardware, label_shared
from collector.ratio_words import (
    NO_DIFFERENCE,
    UNDECIDED,
    count_differences,
    describe_longer,
    quote_longer,
    take_joint_intervals,
)
from collector.results.frames import CELL_COLUMNS, PROTOCOL_FIELDS, Row, group_rows, list_rows, select_alone
from collector.results.summary import read_estimate
from collector.statistics import Estimate, invert_estimate, judge_together, scale_estimate
from collector.tables.cells import NOTE, REPEATS
from collector.tables.environments import describe_libraries
from collector.tables.table import (
    CELL,
    Column,
    Table,
    find_common_text,
    interval_column,
    make_table,
    number_column,
    select_known,
    text_column,
)
from collector.units import Unit, choose_memory_unit, format_number, format_significant

INTERVAL_TITLE = "95 % interval"
"""The interval that holds together with those of all ratios that it was judged with: the one beside a verdict."""


CAPTIONS: Mapping[str, str] = {
    FRAMEWORKS.name: "Frameworks: step times, and which side takes longer",
    DEVICES.name: "GPU and CPU: step times, and which side takes longer",
    MODES.name: "Modes: step times, and which side takes longer",
    PRECISIONS.name: "Precisions: step times, and which side takes longer",
    WEAK_SCALING.name: "Weak scaling, the same batch per GPU: throughput over that of as many single GPUs",
    STRONG_SCALING.name: "Strong scaling, the same global batch: throughput over that of as many single GPUs",
}
SETTINGS: Mapping[str, str] = {
    "memory_format": "layout of images",
    "optimizer": "optimizer",
    "cuda_graph": "use of CUDA graphs",
}
"""The settings that a mode or a precision brings along, by their names in the environment, in words."""


def make_comparison_table(comparison: Comparison, analysis: Analysis) -> Table:
    """Return the pairs of a comparison with their verdicts, without those left out."""
    pairs = analysis.comparisons[comparison.name]
    rows = pairs[pairs["decision"] != "left out"]
    hardware = _hardware_columns(comparison)
    is_scaling = comparison.measure == "efficiency"
    verdict = replace(text_column("verdict", "verdict"), is_finding=True)
    own = interval_column(INTERVAL_TITLE, "ratio_low", "ratio_high", units.PERCENT)
    interval = Column(title=INTERVAL_TITLE, sources=("interval",), format=str, align="right")
    constants = {column.title: text for column in hardware if (text := find_common_text(column, rows))}
    columns = [
        text_column("workload", "workload"),
        Column(title="sides", sources=("subject", "reference"), format="{} / {}".format),
        number_column("first", "center_step_seconds_subject", units.MILLISECOND, num_digits=units.NUM_TIME_DIGITS),
        number_column("second", "center_step_seconds_reference", units.MILLISECOND, num_digits=units.NUM_TIME_DIGITS),
        *((number_column("efficiency", "ratio", units.PERCENT), own, verdict) if is_scaling else (verdict, interval)),
        *(column for column in hardware if column.title not in constants),
        text_column("note", "note", is_optional=True),
    ]
    said_once = (f"{title}: {text}." for title, text in constants.items())
    collection = analysis.collection
    settings = _describe_settings(comparison, list_rows(rows), collection.environments)
    remarks = [count_differences(rows), *said_once, describe_libraries(rows, collection), settings]
    listed = list_rows(take_joint_intervals(rows))
    intervals = [quote_longer(row["ratio"], row["ratio_low"], row["ratio_high"]) or units.NOT_THERE for row in listed]
    verdicts = [_describe_verdict(row, comparison) for row in listed]
    shown = rows.assign(workload=label_shared(rows), interval=intervals, verdict=verdicts)
    return make_table(CAPTIONS[comparison.name], columns, shown, remark=" ".join(filter(None, remarks)))


VERDICT_WORDS = {
    UNDECIDED: NO_DIFFERENCE,
    "one repeat": "no verdict: one repeat counts, no interval",
    "machines differ": "no verdict: the machines differ, by how much is not known",
}


def _describe_verdict(pair: Row, comparison: Comparison) -> str:
    """Return what is decided of a pair in words: `TensorFlow graph takes 12.0 % longer`, whichever side it is."""
    if pd.isna(pair["ratio"]):
        return f"{pair['decision']}: {pair['reason']}"
    if pair["decision"] in VERDICT_WORDS:
        return VERDICT_WORDS[pair["decision"]]
    if comparison.measure == "efficiency":
        ratio = read_estimate(pair, center="ratio")
        center, *ends = (format_significant(100 * value) for value in (ratio.center, *(ratio.interval or ())))
        return f"{center} % of linear ({' to '.join(ends)})"
    slower = pair["subject" if pair["decision"] == "slower" else "reference"]
    return f"{slower} takes {describe_longer(_read_longer(pair))}"


def _read_longer(pair: Row) -> Estimate:
    """Return the time of the slower side over that of the other."""
    ratio = read_estimate(pair, center="ratio")
    return ratio if ratio.center >= 1 else invert_estimate(ratio)


def _describe_settings(comparison: Comparison, pairs: list[Row], environments: Mapping[str, Environment]) -> str:
    """Return as a sentence in which SETTINGS the sides of a pair differ, with the values; empty where in none.

    Of several pairs the first that differs counts; a setting that one side does not record is left out. Of frameworks
    `collector.tables.environments` says how they differ.
    """
    found: dict[str, str] = {}
    for pair in pairs if comparison is not FRAMEWORKS else ():
        sides = [environments.get(str(pair[f"environment_id_{side}"])) for side in SIDES]
        for name, words in SETTINGS.items():
            if name == "memory_format" and not take_images([pair["model"]]):
                continue
            values = [side.settings[name] for side in sides if side and name in side.settings]
            if len(values) == 2 and values[0] != values[1]:
                ends = [("yes" if one else "no") if isinstance(one, bool) else str(one) for one in values]
                found.setdefault(name, f"{words} {' / '.join(ends)}")
    if not found:
        return ""
    texts = "; ".join(found[name] for name in SETTINGS if name in found)
    return f"The sides differ in settings, too: {texts}. How much of a ratio that explains is not known."


def _hardware_columns(comparison: Comparison) -> list[Column]:
    """Return where a pair ran: the GPU of a GPU cell, CPU and threads of a CPU cell."""
    title, side = ("Hardware", "subject") if comparison.same_hardware else ("CPU", "reference")
    sources = (f"cpu_model_{side}", f"num_threads_{side}", f"gpu_name_{side}")
    gpu = [] if comparison.same_hardware else [text_column("GPU", "gpu_name_subject")]
    return [text_column("Measured on", "scope"), *gpu, Column(title=title, sources=sources, format=label_hardware)]


ROLE_NAMES = {"cell": "the cell", "neighbour": "its neighbour"}
ROLE = text_column("tenants with", "role_name", is_optional=True)
NOT_COMPARED = text_column("not compared, because", "not_compared", is_optional=True)
SPEED_REMARK = (
    "All tenants run at once, and only the time in which all of them ran counts. Slowdown: the rate of the same work "
    "alone on the device over that of a tenant, the geometric mean of the tenants; beside it that of the slowest one."
)
LATENCY_REMARK = (
    "Percentiles of each repeat, over the steps of all its tenants of a kind, and the geometric mean of the repeats. "
    "Over alone: the same percentile of the same work alone on the device."
)
DEVICE_REMARK = (
    "Together: each tenant's rate over that of its work alone, added up; 1 is what one alone gets out of the device. A "
    "difference is stated where its interval excludes 1; these intervals hold together. "
    "Jain's index of these shares is 1 where all tenants get the same, and 1/n where one of n gets everything. Energy "
    "is that of the whole device over the samples of all tenants; over alone: what the same samples cost alone."
)
DECISION_WORDS = {"more": "more than one alone", "less": "less than one alone", UNDECIDED: NO_DIFFERENCE}


def make_tenant_speed_table(analysis: Analysis) -> Table:
    rows = _name_roles(analysis.sharing)
    columns = [
        CELL,
        ROLE,
        *_estimate_columns("each tenant", "tenant_samples_per_s", units.THROUGHPUT),
        number_column("alone", "alone_samples_per_s", units.THROUGHPUT),
        *_estimate_columns("slowdown", "slowdown", units.RATIO),
        *_estimate_columns("slowest tenant's", "slowest_slowdown", units.RATIO),
        REPEATS,
        text_column("out of memory", "fallen", is_optional=True),
        NOT_COMPARED,
        NOTE,
    ]
    return make_table("Sharing: what each tenant gets, and what it gets alone", columns, rows, remark=SPEED_REMARK)


def make_tenant_latency_table(analysis: Analysis) -> Table:
    columns = [
        column
        for percent in (50, 95, 99)
        for column in (
            *_estimate_columns(f"p{percent}", f"p{percent}_step_seconds", units.MILLISECOND),
            *_estimate_columns(f"p{percent} over alone", f"p{percent}_ratio", units.RATIO),
        )
    ]
    rows = select_known(_name_roles(analysis.sharing), columns)
    caption = "Sharing: the latency of a tenant's step, and what the others do to it"
    return make_table(caption, [CELL, ROLE, *columns], rows, remark=LATENCY_REMARK)


def make_shared_device_table(analysis: Analysis) -> Table:
    sharing = analysis.sharing
    rows = sharing[(sharing["role"] == "cell") & (sharing["num_ok"] > 0)]
    rows = rows.assign(words=rows["decision"].map(DECISION_WORDS))
    memory = choose_memory_unit(rows[["tenant_peak_bytes", "device_peak_bytes"]].max().dropna())
    columns = [
        CELL,
        number_column("together, over one alone", "aggregate_ratio", units.RATIO, is_optional=True),
        replace(interval_column("95 % interval", "joint_low", "joint_high", units.RATIO), is_optional=True),
        text_column("verdict", "words", is_optional=True),
        *_estimate_columns("Jain's index", "jain_index", units.RATIO),
        number_column("its lowest", "lowest_jain_index", units.RATIO, is_optional=True),
        *_estimate_columns("energy per sample", "joules_per_sample", units.JOULE),
        *_estimate_columns("over alone", "energy_ratio", units.RATIO),
        number_column("memory, fullest tenant", "tenant_peak_bytes", memory, is_optional=True),
        number_column("device, peak in use", "device_peak_bytes", memory, is_optional=True),
        NOT_COMPARED,
    ]
    remark = " ".join(filter(None, [DEVICE_REMARK, count_differences(rows)]))
    return make_table("Sharing: all tenants of a device together", columns, rows, remark=remark)


def _name_roles(sharing: pd.DataFrame) -> pd.DataFrame:
    names = sharing["role"].map(ROLE_NAMES)
    return sharing.assign(role_name=names.where(sharing["neighbour"].notna(), None))


def _estimate_columns(title: str, name: str, unit: Unit) -> list[Column]:
    interval = interval_column("95 % interval", f"{name}_low", f"{name}_high", unit)
    return [number_column(title, name, unit, is_optional=True), replace(interval, is_optional=True)]


def make_ranking_table(analysis: Analysis) -> Table:
    rows = []
    for one in rank_programs(analysis):
        behind = zip(one.programs[1:], one.behind, strict=True)
        longer = (f"{row['variant']}, {describe_longer(ratio)}" for row, (ratio, told) in behind if told)
        first = one.programs[0]
        time = format_number(first["center_step_seconds"], units.MILLISECOND, units.NUM_TIME_DIGITS)
        tied = _name_tied(first, one.tied, "variant")
        rows.append((one.work, f"fastest: {first['variant']}, {time} ms", tied, next(longer, "")))
    currency = "" if analysis.costs is None else analysis.costs.currency
    for cheap in list_cheapest(analysis):
        row, cost, cell = cheap.first
        amount = f"{format_significant(cost.center)} {currency} for {cell.amount}"
        price = f"cheapest: {row['label']}, {amount} on {describe_place(cell, cell.offers[0])}"
        tied = _name_tied(row, [other.row for other in cheap.tied], "label")
        rows.append((f"{row['model']} {row['phase']}", price, tied, ""))
    titles = ["work", "first", "not told from it", "the next that takes longer"]
    columns = [text_column(title, title) for title in titles]
    return make_table("Fastest and cheapest", columns, pd.DataFrame(rows, columns=titles))


def _name_tied(first: Row, others: Sequence[Row], name: str) -> str:
    """Return the names of the rows that are not told from the first, and which pairs have few repeats to tell by."""
    numbers = (min(int(first["num_counted"]), int(row["num_counted"])) for row in others)
    few = (f" ({number} repeats: too few to tell)" if number < LEAST_TOLD else "" for number in numbers)
    return "; ".join(f"{row[name]}{words}" for row, words in zip(others, few, strict=True)) or "none"


def make_nights_table(analysis: Analysis) -> Table:
    """Return one row per change that was suspected, the newest first."""
    columns = [
        text_column("cell", "cell"),
        replace(text_column("change, %", "shift"), align="right"),
        replace(text_column("95 % interval, %", "interval"), align="right"),
        text_column("what became of it", "state"),
        text_column("first run after it", "first"),
        text_column("seen in", "night"),
        text_column("changed in the environment", "environment"),
        text_column("reason", "reason"),
    ]
    rows = pd.DataFrame([_describe(change) for change in reversed(analysis.history.changes)])
    remark = "Ratios of times, after the change over before. docs/nights.md says how they are found and decided."
    return make_table("Changes over the nights", columns, rows, remark=remark)


def _describe(change: RecordedChange) -> dict[str, str]:
    suspicion, decision, shift = change.suspicion, change.decision, change.shift
    parts = (f"{one.what}: {one.before or 'unknown'} → {one.after or 'unknown'}" for one in suspicion.changes)
    return {
        "cell": name_changed(suspicion),
        "shift": f"{100 * (shift.ratio - 1):+.1f}",
        "interval": f"{100 * (shift.low - 1):+.1f} to {100 * (shift.high - 1):+.1f}",
        "state": "waits to be measured again" if decision is None else decision.outcome,
        "first": suspicion.first_run_id,
        "night": suspicion.night_run_id,
        "environment": "; ".join(parts) or "nothing that is recorded",
        "reason": units.NOT_THERE if decision is None else decision.reason,
    }


WORK_COLUMNS = (
    *(name for name in CELL_COLUMNS if name not in ("framework", "mode", *PROTOCOL_FIELDS)),
    *("hardware_id", "ran_on"),
)
"""What is equal in cells that did the same work on the same machines."""
PRICED_WORK_COLUMNS = ("model", "phase", "input_size", "num_classes", "data_dir")
"""What is equal in cells of one work, of which the cheapest is said: a smaller picture is no cheaper program."""
SEVERAL_MACHINES = "several"
LEAST_TOLD = 3
"""Repeats below which a difference of 5 % is hardly ever found (docs/statistics.md)."""
Key = tuple[str, str]
"""cell_id, environment_id."""


Told = tuple[Estimate, bool]
"""The time of the slower of two programs over that of the faster one, and whether they are told apart."""


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Holds the programs that did one kind of work on the same machines."""

    work: str
    programs: tuple[Row, ...]
    """Rows of the summary, the least step time first; two or more."""
    behind: tuple[Told, ...]
    """Of each program but the first, its time over that of the first."""

    @property
    def tied(self) -> list[Row]:
        return [row for row, (_, is_told) in zip(self.programs[1:], self.behind, strict=True) if not is_told]


class Priced(NamedTuple):
    """A row of the summary with what its amount of samples or tokens costs, and the cell that was priced."""

    row: Row
    cost: Estimate
    cell: CellCost


class Cheapest(NamedTuple):
    """The cell of a work (PRICED_WORK_COLUMNS) that costs least, and others of it that are not told from it."""

    first: Priced
    tied: tuple[Priced, ...]


def rank_programs(analysis: Analysis) -> list[Ranking]:
    """Return a ranking for each kind of work that two programs or more did, in the order of the plan.

    Programs count where they had the device to themselves, have an interval and a repeat under sound conditions. Those
    on one machine are ranked with others on it, those on several machines with each other.
    """
    known = _select_sound(select_alone(analysis.summary))
    rows = known.assign(ran_on=known["machines"].mask(known["num_machines"] > 1, SEVERAL_MACHINES))
    works = [
        sorted(own, key=lambda row: float(row["center_step_seconds"]))
        for own in group_rows(list_rows(rows), WORK_COLUMNS).values()
        if len({(row["framework"], row["mode"]) for row in own}) > 1
    ]
    told = _list_judged(analysis, (FRAMEWORKS, MODES))
    others = {
        pair: estimate_pair(slower, faster)
        for own in works
        for faster, slower in combinations(own, 2)
        if (pair := _name_pair(faster, slower)) not in told
    }
    judged = judge_together([*others.values()])
    told |= {pair: (ratio, one.is_different) for (pair, ratio), one in zip(others.items(), judged, strict=True)}
    return [
        Ranking(work=name, programs=tuple(own), behind=tuple(told[_name_pair(own[0], row)] for row in own[1:]))
        for name, own in zip(_name_works(works), works, strict=True)
    ]


def list_cheapest(analysis: Analysis) -> list[Cheapest]:
    """Return the cheapest cell of each work, in the order of the plan; none without prices.

    A cell at the same price an hour of which a table says how its time compares is told from the cheapest by that
    verdict: one pair has one verdict. Any other is, where its interval begins above the cheapest one's end.
    """
    cells = () if analysis.costs is None else analysis.costs.cells
    known = {(cell.cell_id, cell.label): cell for cell in cells if cell.offers}
    works: defaultdict[tuple[str, ...], list[Priced]] = defaultdict(list)
    for row in list_rows(_select_sound(analysis.summary)):
        if cell := known.get((row["cell_id"], row["label"])):
            cost = scale_estimate(read_estimate(row), cell.offers[0].amount_cost.value / cell.step_seconds.value)
            work = tuple("" if pd.isna(row[name]) else str(row[name]) for name in PRICED_WORK_COLUMNS)
            works[work].append(Priced(row, cost, cell))
    number = sum(map(len, works.values()))
    judged = _list_judged(analysis, (FRAMEWORKS, MODES, PRECISIONS))

    def is_told(first: Priced, other: Priced) -> bool:
        pair = _name_pair(first.row, other.row)
        if pair in judged and len({one.cell.offers[0].price_per_hour for one in (first, other)}) == 1:
            return judged[pair][1]
        own, theirs = (one.cost.find_joint_interval(number) for one in (first, other))
        return own is not None and theirs is not None and own[1] < theirs[0]

    ranked = (sorted(own, key=lambda one: one.cost.center) for own in works.values())
    return [Cheapest(first, tuple(one for one in others if not is_told(first, one))) for first, *others in ranked]


def _select_sound(summary: pd.DataFrame) -> pd.DataFrame:
    return summary[(summary["num_sound"] > 0) & summary["log_standard_error"].notna()]


def _list_judged(analysis: Analysis, comparisons: Iterable[Comparison]) -> dict[frozenset[Key], Told]:
    """Return what the tables say of the pairs that they judge."""
    found = {}
    for comparison in comparisons:
        pairs = analysis.comparisons[comparison.name]
        for row in list_rows(select_alone(pairs[pairs["p_value"].notna()])):
            sides = frozenset((str(row[f"cell_id_{side}"]), str(row[f"environment_id_{side}"])) for side in SIDES)
            found[sides] = _read_longer(row), row["decision"] in ("slower", "faster")
    return found


def _name_pair(*rows: Row) -> frozenset[Key]:
    return frozenset((str(row["cell_id"]), str(row["environment_id"])) for row in rows)


def _name_works(works: Iterable[list[Row]]) -> list[str]:
    """Return the name of each kind of work, with its hardware where the same was done on several."""
    firsts = [own[0] for own in works]
    counts = Counter(row["workload"] for row in firsts)
    return [
        f"{name}, {label_hardware(row['cpu_model'], row['num_threads'], row['gpu_name'])}" if number > 1 else name
        for row in firsts
        for name, number in [(str(row["workload"]), counts[row["workload"]])]
    ]
