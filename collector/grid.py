"""Lay out a run as one grid, work x program, and compare every program with every other of its work.

Work is what was computed (model, phase, batch, size, tenants), a program is what computed it (framework, mode,
precision, device). All ratios over one baseline are one family: a difference is stated where the interval that holds
together with those of all of them excludes 1 (docs/decisions/0012-intervals-and-differences.md).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Literal, NamedTuple

import pandas as pd

from collector.analysis import Analysis
from collector.cell_words import (
    DEVICE_NAMES,
    FRAMEWORK_NAMES,
    TOKEN_PHASES,
    count_tokens,
    describe_field,
    name_sharing,
    name_size,
)
from collector.comparisons import FP32, Obstacle, estimate_pair, find_obstacle
from collector.costs.document import CostDocument
from collector.labels import find_varying, label_hardware, sort_cells
from collector.ratio_words import format_percent
from collector.results.frames import Row, describe_cell, list_rows
from collector.results.summary import average_energies, count_values
from collector.statistics import Direction, Estimate, judge_together
from collector.units import (
    JOULE,
    MILLISECOND,
    NUM_DIGITS,
    SECOND,
    THROUGHPUT,
    Unit,
    choose_memory_unit,
    count_things,
    format_interval,
    format_number,
    format_significant,
)

State = Literal["ok", "unsound", "failed", "left-out"]
Verdict = Literal["longer", "shorter", "undecided", "none"]
VERDICTS: Mapping[Direction, Verdict] = {"above": "longer", "below": "shorter", "undecided": "undecided"}
REASONS: Mapping[Obstacle, str] = {
    "failed": "a side has no repeat that ended ok",
    "unsound": "no repeat of a side was measured under sound conditions",
    "hardware": "the hardware differs",
    "version": "the framework's versions differ",
    "machines": "the machines differ, by how much is not known",
    "one-repeat": "one repeat counts, so there is no interval",
}
TIMES = ("× slower", "× faster")
ENERGIES = {"gpu_energy_per_sample_joules": "GPU", "cpu_energy_per_sample_joules": "CPU sockets"}
MEMORIES = {"peak_memory_allocated_bytes": "GPU allocator", "peak_rss_bytes": "RSS"}
"""The columns of a figure with what each is of, the preferred one first."""
PROGRAM_FIELDS = ("framework", "mode", "precision", "device", "num_gpus")
WITHIN = 2.0
"""Up to this factor a ratio is written in percent, beyond it as a factor."""
LOPSIDED = 1.1
"""From this factor on, between a figure and an end of its interval, the distances to both ends differ by a tenth."""


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """Holds how long a program's step takes relative to the baseline's, for one kind of work."""

    estimate: Estimate | None
    low: float | None = None
    high: float | None = None
    """The ends of the interval that holds together with those of the baseline's other ratios."""
    verdict: Verdict = "none"
    reason: Obstacle = ""
    """Why there is no verdict."""


class Place(NamedTuple):
    """What the run has at one crossing of work and program."""

    work: str
    program: str
    cell_id: str
    state: State
    row: Row
    """The row of the summary; of a cell that could not run, its fields."""
    status: str
    """How its repeats ended that did not end ok, or why it was left out."""


class Metric(NamedTuple):
    """One figure of a cell that the grid can show, in base units."""

    name: str
    title: str
    unit: Unit
    columns: tuple[str, ...]
    """The first of these columns that has a value is shown."""
    best: Callable[[Iterable[float]], float] = min
    signs: tuple[str, str] | None = None
    """What `▲` and `▼` say; None of a metric of one value a cell, whose ratios have no verdict."""
    words: tuple[str, str] = ("×", "×")
    """What follows a factor above and below 1; where they differ, that below 1 is said by its inverse."""

    def find_column(self, row: Row) -> str | None:
        return next((name for name in self.columns if not pd.isna(row.get(name))), None)

    def find(self, row: Row) -> float | None:
        name = self.find_column(row)
        return None if name is None else float(row[name])


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The places of a run by work and program, and its ratios by baseline."""

    works: tuple[str, ...]
    shared: str
    """What is the same in all works and in the name of none, such as `batch 64, 224 px`."""
    programs: tuple[str, ...]
    places: Mapping[tuple[str, str], Place]
    metrics: tuple[Metric, ...]

    @cached_property
    def ratios(self) -> dict[str, dict[tuple[str, str], Ratio]]:
        """The ratios over each program as the baseline: by baseline, then by (work, program)."""
        return {baseline: self._compare(baseline) for baseline in self.programs}

    @cached_property
    def num_tested(self) -> dict[str, int]:
        """How many ratios over each program have an interval; these hold together."""
        return {name: sum(one.low is not None for one in found.values()) for name, found in self.ratios.items()}

    @property
    def baseline(self) -> str:
        """The program over which most ratios have an interval; of several the first. Empty without programs."""
        return max(self.programs, key=lambda name: self.num_tested[name], default="")

    def find_best(self, work: str, metric: Metric) -> set[str]:
        """Return the programs with the best figure of a work, of those under sound conditions with one of its kind.

        Empty where fewer than two programs have a figure of one column: allocated memory is not held against resident.
        """
        sound = [one for name in self.programs if (one := self.places.get((work, name))) and one.state == "ok"]
        for column in metric.columns:
            figures = {one.program: float(one.row[column]) for one in sound if metric.find_column(one.row) == column}
            if len(figures) > 1:
                best = metric.best(figures.values())
                return {program for program, figure in figures.items() if figure == best}
        return set()

    def _compare(self, baseline: str) -> dict[tuple[str, str], Ratio]:
        found = {
            (work, program): _estimate(self.places[work, program], self.places[work, baseline])
            for work, program in product(self.works, self.programs)
            if program != baseline and {(work, program), (work, baseline)} <= self.places.keys()
        }
        tested = {key: estimate for key, (estimate, reason) in found.items() if estimate is not None and not reason}
        judged = dict(zip(tested, judge_together(list(tested.values())), strict=True))
        return {
            key: Ratio(estimate=estimate, low=own.joint_low, high=own.joint_high, verdict=VERDICTS[own.verdict])
            if (own := judged.get(key))
            else Ratio(estimate=estimate, reason=reason)
            for key, (estimate, reason) in found.items()
        }


def _estimate(subject: Place, reference: Place) -> tuple[Estimate | None, Obstacle]:
    rows = subject.row, reference.row
    if any(place.state in ("failed", "left-out") for place in (subject, reference)):
        return None, "failed"
    is_same_kind = all(len({_name_device(row, part) for row in rows}) == 1 for part in ("device", "hardware"))
    is_same_framework = rows[0]["framework"] == rows[1]["framework"]
    return estimate_pair(*rows), find_obstacle(*rows, same_hardware=is_same_kind, same_version=is_same_framework)


def make_grid(analysis: Analysis) -> Grid:
    left_out, summary = analysis.collection.run.left_out, average_energies(analysis.summary, analysis.collection)
    rows = summary.assign(left_out="", has_environments=summary["num_environments"] > 1)
    if left_out:
        others = [describe_cell(one.cell) | {"cell_id": one.cell.cell_id, "left_out": one.reason} for one in left_out]
        rows = pd.concat([rows, pd.DataFrame(others)], ignore_index=True).astype({"num_gpus": "int64"})
    rows = sort_cells(rows)
    tokens = pd.Series([count_tokens(row) for row in list_rows(rows[["phase", "input_size"]])], rows.index)
    rows["rate_per_s"] = rows["throughput_samples_per_s"] * tokens.where(tokens > 0, 1)
    for name in ENERGIES:
        rows[name] = rows[name] * (1e6 / tokens).where(tokens > 0, 1.0)
    if analysis.costs is not None:
        rows["cost_of_amount"] = _list_costs(rows, analysis.costs)
    bad = analysis.collection.results
    statuses = bad[bad["status"] != "ok"].groupby("cell_id", sort=False)["status"].agg(count_values).to_dict()
    listed = list_rows(rows)
    (works, shared), programs = _name_works(listed, rows), _name_programs(listed)
    places: dict[tuple[str, str], Place] = {}
    for row, work, program in zip(listed, works, programs, strict=True):
        if (work, program) in places:  # two cells that the names cannot tell apart, as of two seeds
            program = f"{program} #{row['cell_id'][-4:]}"
        status = str(row["left_out"] or statuses.get(row["cell_id"], ""))
        state: State = "ok" if row["num_sound"] else "unsound"
        state = "left-out" if row["left_out"] else state if row["num_ok"] else "failed"
        places[work, program] = Place(work, program, str(row["cell_id"]), state, row, status)
    return Grid(
        shared=shared,
        works=tuple(dict.fromkeys(work for work, _ in places)),
        programs=tuple(_sort_programs(places)),
        places=places,
        metrics=_list_metrics(rows, analysis),
    )


def _sort_programs(places: Mapping[tuple[str, str], Place]) -> list[str]:
    """Return the programs: those of the GPU and of the first precision first, then in the order of the cells."""
    firsts: dict[str, Row] = {}
    for (_, program), place in places.items():
        firsts.setdefault(program, place.row)
    precisions = list(dict.fromkeys(row["precision"] for row in firsts.values()))

    def rank(name: str) -> tuple[bool, int]:
        return firsts[name]["device"] == "cpu", precisions.index(firsts[name]["precision"])

    return sorted(firsts, key=rank)


def _name_works(listed: Sequence[Row], rows: pd.DataFrame) -> tuple[list[str], str]:
    """Return the name of each row's work without what all works share, and what they share."""
    varying, num_sizes = find_varying(rows), rows.groupby("model")["input_size"].nunique()
    named = []
    for row in listed:
        fields = {name: None if pd.isna(value) else value for name, value in row.items()}
        optional = [name for name in varying[row["model"]] if name not in PROGRAM_FIELDS]
        sharing = name_sharing(fields)  # it names the device
        is_sized = num_sizes[row["model"]] > 1 or len(num_sizes) == 1
        parts = [f"batch {row['batch_size']}", *([name_size(fields)] if is_sized else []), *sharing]
        named.append((f"{row['model']} {row['phase']}", parts + [describe_field(one, fields[one]) for one in optional]))
    shared = [part for part in named[0][1] if all(part in parts for _, parts in named)] if named else []
    names = [", ".join([work, *(part for part in parts if part not in shared)]) for work, parts in named]
    return names, ", ".join(shared)


def _name_programs(listed: Sequence[Row]) -> list[str]:
    """Return framework and mode, the precision other than fp32, and CPU, GPUs and hardware where the run has several.

    Where the run has both devices, a device that is not named is the GPU.
    """
    several = {name: len({row[name] for row in listed}) > 1 for name in ("device", "num_gpus")}
    hardware = {
        device: {name for row in listed if row["device"] == device and (name := _name_device(row, "hardware"))}
        for device in DEVICE_NAMES
    }
    names = []
    for row in listed:
        parts = [f"{FRAMEWORK_NAMES[row['framework']]} {row['mode']}"]
        parts += [row["precision"]] if row["precision"] != FP32 else []
        parts += [DEVICE_NAMES["cpu"]] if several["device"] and row["device"] == "cpu" else []
        parts += [count_things(row["num_gpus"], "GPU")] if several["num_gpus"] and row["device"] == "gpu" else []
        parts += [_name_device(row, "hardware")] if len(hardware[row["device"]]) > 1 else []
        name = ", ".join(filter(None, parts))
        names.append(f"{name} [{row['environment_id']}]" if row["has_environments"] is True else name)
    return names


def _name_device(row: Row, part: Literal["device", "hardware"]) -> str:
    if part == "device":
        return f"{row['device']} {row['num_gpus']}"
    if row["device"] == "gpu":
        return "" if pd.isna(row.get("gpu_name")) else str(row["gpu_name"])
    return label_hardware(row.get("cpu_model"), row.get("num_threads"))


def _list_costs(rows: pd.DataFrame, costs: CostDocument) -> list[float]:
    """Return what 1,000 samples of each row, or a million tokens, cost on its cheapest machine; NaN if unknown."""
    cheapest = {(one.cell_id, one.label): one.offers[0].amount_cost.value for one in costs.cells if one.offers}
    return [cheapest.get(key, math.nan) for key in zip(rows["cell_id"], rows["label"], strict=True)]


def _list_metrics(rows: pd.DataFrame, analysis: Analysis) -> tuple[Metric, ...]:
    """Return the metrics of which some cell has a figure, the step time first; costs are put into the rows' places."""
    memory = [float(value) for name in MEMORIES if name in rows for value in rows[name].dropna()]
    of = [
        ", else ".join(words for name, words in kinds.items() if name in rows and rows[name].notna().any())
        for kinds in (MEMORIES, ENERGIES)
    ]
    kinds = [name in TOKEN_PHASES for name in rows["phase"]]

    def name_amount(samples: str, tokens: str) -> str:
        return " or ".join([samples] * (not all(kinds) or not kinds) + [tokens] * any(kinds))

    rate = Unit(label=name_amount("samples/s", "tokens/s"), size=1.0, num_digits=THROUGHPUT.num_digits)
    energy = f"energy {name_amount('a sample', 'of a million tokens')} ({of[1]})"
    known = [
        Metric("time", "step time", MILLISECOND, ("center_step_seconds",), signs=("longer", "shorter"), words=TIMES),
        Metric("throughput", "throughput", rate, ("rate_per_s",), best=max, signs=("more", "less")),
        Metric("memory", f"peak memory ({of[0]})", choose_memory_unit(memory), tuple(MEMORIES)),
        Metric("energy", energy, JOULE, tuple(ENERGIES)),
        *(Metric(f"{kind}-start", f"{kind} start", SECOND, (f"{kind}_start_seconds",)) for kind in ("cold", "warm")),
    ]
    if analysis.costs is not None:
        title = f"cost of {name_amount('1,000 samples', 'a million tokens')} (cheapest machine)"
        known.append(Metric("cost", title, Unit(label=analysis.costs.currency, size=1.0), ("cost_of_amount",)))
    found = [one for one in known if any(name in rows and rows[name].notna().any() for name in one.columns)]
    return tuple(found or known[:1])


def format_figure(metric: Metric, row: Row) -> str:
    value = metric.find(row)
    return "" if value is None else format_number(value, metric.unit, 4 if metric.signs else None)


def format_spread(metric: Metric, row: Row) -> str:
    """Return how far the 95 % interval reaches to either side, `±0.84 %`; both ends of a lopsided one, `0.465 to 6.55`.

    It is symmetric on the log scale, so that a step time and its throughput have the same factor to either end.
    """
    value, high = metric.find(row), row.get("interval_high_seconds")
    if value is None or high is None or pd.isna(high):
        return "one repeat"
    factor = high / row["center_step_seconds"]
    if factor > LOPSIDED:
        return format_interval(value / factor, value * factor, metric.unit, NUM_DIGITS)
    return f"±{format_significant(100 * (factor - 1), 2)} %"


def format_ratio(ratio: float, *, verdict: Verdict | None = None, words: tuple[str, str] = ("×", "×")) -> str:
    """Return a ratio to the baseline: `+12 %`, `−4.0 %`, `64.6×`, `1/5.63×`.

    Before it `▲` or `▼` where it differs from 1, `≈` where no difference is shown, `?` where there is no verdict.
    """
    sign = {None: "", "undecided": "≈ ", "none": "? "}.get(verdict, "▲ " if ratio > 1 else "▼ ")
    if ratio >= WITHIN:
        return f"{sign}{format_significant(ratio)}{words[0]}"
    if ratio <= 1 / WITHIN:
        return f"{sign}{'' if words[0] != words[1] else '1/'}{format_significant(1 / ratio)}{words[1]}"
    return f"{sign}{'−' if ratio < 1 else '+'}{format_percent(abs(ratio - 1))} %"


def describe_ratio(grid: Grid, metric: Metric, key: tuple[str, str], baseline: str) -> tuple[str, str, Sequence[float]]:
    """Return the text below a figure, its title (an interval, or why there is no verdict), and centre and ends to draw.

    Times and throughput have the verdict on the step times; other figures are one value a cell, and have a ratio alone
    where both are of one column.
    """
    ratio = grid.ratios[baseline].get(key)
    if ratio is None:
        return "", "", ()
    if metric.signs is None:
        rows = [grid.places[place].row for place in (key, (key[0], baseline))]
        own, base = (metric.find(row) for row in rows)
        is_alike = len({metric.find_column(row) for row in rows}) == 1
        return format_ratio(own / base) if own and base and is_alike else "", "", ()
    if ratio.estimate is None:
        return "", REASONS[ratio.reason], ()
    power = 1 if metric.best is min else -1
    text = format_ratio(ratio.estimate.center**power, verdict=ratio.verdict, words=metric.words)
    if ratio.low is None or ratio.high is None:
        return text, REASONS[ratio.reason] if ratio.reason else "", ()
    low, center, high = sorted(value**power for value in (ratio.low, ratio.estimate.center, ratio.high))
    interval = f"interval {format_significant(low)} to {format_significant(high)}"
    return text, interval, [float(f"{value:.4g}") for value in (center, low, high)]
