"""Rank the programs that did the same work on the same machines: the fastest, the cheapest, and what is not told from
them.

Whether two programs differ is what the table of their comparison says, if one has both; the pairs that none has, as
TensorFlow against JAX, are judged together. So a program that was chosen for its time is only said to be faster than
another where that remains among all pairs of a family.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from collector.analysis import Analysis
from collector.comparisons import FRAMEWORKS, MODES, PRECISIONS, Comparison
from collector.costs.document import OfferCost
from collector.labels import label_hardware
from collector.machines import SIDES, estimate_pair, is_confounded
from collector.results.cell_repeats import read_estimate
from collector.results.frames import CELL_COLUMNS, PROTOCOL_FIELDS, Row, list_rows, select_alone
from collector.statistics import Estimate, invert_estimate, judge_together, scale_estimate

WORK_COLUMNS = (
    *(name for name in CELL_COLUMNS if name not in ("framework", "mode", *PROTOCOL_FIELDS)),
    *("hardware_id", "ran_on"),
)
"""What is equal in cells that did the same work on the same machines."""
PRICED_WORK_COLUMNS = ("model", "phase", "input_size", "num_classes", "data_dir")
"""What is equal in cells of one work, of which the cheapest is said: a smaller picture is no cheaper program."""
SEVERAL_MACHINES = "several"
THOUSAND, SECONDS_PER_HOUR = 1000.0, 3600.0
Key = tuple[str, str]
"""cell_id, environment_id."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What is known of two programs."""

    ratio: Estimate
    """The time of the slower one over that of the faster one."""
    is_different: bool


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Holds the programs that did one kind of work on the same machines."""

    work: str
    programs: tuple[Row, ...]
    """Rows of the summary, the least step time first; two or more."""
    behind: tuple[Judged, ...]
    """Of each program but the first, its time over that of the first."""

    @property
    def tied(self) -> list[Row]:
        """The programs that are not told from the first."""
        rest = zip(self.programs[1:], self.behind, strict=True)
        return [row for row, judged in rest if not judged.is_different]


@dataclass(frozen=True, kw_only=True)
class Priced:
    """What 1,000 samples of a cell cost, with an interval."""

    row: Row
    cost: Estimate
    offer: OfferCost


@dataclass(frozen=True, kw_only=True)
class Cheapest:
    """The cell of a work (PRICED_WORK_COLUMNS) of which 1,000 samples cost least."""

    first: Priced
    tied: tuple[Priced, ...]
    """Others of the work that are not told from it, the cheapest first."""


def rank_programs(analysis: Analysis) -> list[Ranking]:
    """Return a ranking for each kind of work that two programs or more did, in the order of the plan.

    Programs count where they had the device to themselves, have an interval and a repeat under sound conditions. Those
    on one machine are ranked with others on it, those on several machines with each other.
    """
    summary = select_alone(analysis.summary)
    known = summary[(summary["num_sound"] > 0) & summary["log_standard_error"].notna()]
    rows = known.assign(ran_on=known["machines"].mask(known["num_machines"] > 1, SEVERAL_MACHINES))
    groups = [list_rows(own) for _, own in rows.groupby(list(WORK_COLUMNS), dropna=False, sort=False)]
    works = [
        sorted(own, key=lambda row: float(row["center_step_seconds"]))
        for own in groups
        if len({(row["framework"], row["mode"]) for row in own}) > 1
    ]
    judged = _judge_all(works, _index_judged(analysis))
    return [
        Ranking(
            work=name,
            programs=tuple(own),
            behind=tuple(judged[_name_key(own[0]), _name_key(row)] for row in own[1:]),
        )
        for name, own in zip(_name_works(works), works, strict=True)
    ]


def list_cheapest(analysis: Analysis) -> list[Cheapest]:
    """Return the cheapest cell of each work, in the order of the plan; none without prices."""
    priced = [_price(*one) for one in _list_priced(analysis)]
    works: dict[tuple[str, ...], list[Priced]] = {}
    for one in priced:
        work = tuple("" if pd.isna(one.row[name]) else str(one.row[name]) for name in PRICED_WORK_COLUMNS)
        works.setdefault(work, []).append(one)
    verdicts = {
        frozenset(_name_sides(row)): row["decision"] in ("slower", "faster")
        for comparison in (FRAMEWORKS, MODES, PRECISIONS)
        for row in _list_judged(analysis, comparison)
    }
    return [_find_cheapest(cells, verdicts, len(priced)) for cells in works.values()]


def _find_cheapest(cells: Sequence[Priced], verdicts: Mapping[frozenset[Key], bool], number: int) -> Cheapest:
    """Return the cheapest of the cells of a work, which are among `number` that have a cost.

    A cell at the same price an hour of which a table says how its time compares is told from the cheapest by that
    verdict: one pair has one verdict. Any other is, where its interval begins above the cheapest one's end.
    """
    first, *others = sorted(cells, key=lambda one: one.cost.center)

    def is_told(other: Priced) -> bool:
        if other.offer.price_per_hour == first.offer.price_per_hour:
            verdict = verdicts.get(frozenset((_name_key(first.row), _name_key(other.row))))
            if verdict is not None:
                return verdict
        own, theirs = (one.cost.find_joint_interval(number) for one in (first, other))
        return own is not None and theirs is not None and own[1] < theirs[0]

    tied = tuple(one for one in others if not is_told(one))
    return Cheapest(first=first, tied=tied)


def _price(row: Row, offer: OfferCost) -> Priced:
    hours = THOUSAND / row["batch_size"] / SECONDS_PER_HOUR
    return Priced(row=row, cost=scale_estimate(read_estimate(row), hours * offer.price_per_hour), offer=offer)


def _list_priced(analysis: Analysis) -> list[tuple[Row, OfferCost]]:
    """Return each sound row of the summary with an interval and a price, with its cheapest offer."""
    cells = () if analysis.costs is None else analysis.costs.cells
    offers = {(cell.cell_id, cell.label): cell.offers[0] for cell in cells if cell.offers}
    summary = analysis.summary
    rows = list_rows(summary[(summary["num_sound"] > 0) & summary["log_standard_error"].notna()])
    return [(row, offers[key]) for row in rows if (key := (row["cell_id"], row["label"])) in offers]


def _list_judged(analysis: Analysis, comparison: Comparison) -> list[Row]:
    """Return the pairs of a comparison whose ratio says something of what is compared."""
    pairs = analysis.comparisons[comparison.name]
    sound = (pairs["num_sound_subject"] > 0) & (pairs["num_sound_reference"] > 0)
    rows = list_rows(select_alone(pairs[pairs["log_standard_error"].notna() & sound]))
    return [row for row in rows if not is_confounded(row, comparison.field)]


def _index_judged(analysis: Analysis) -> dict[tuple[Key, Key], Judged]:
    found = {}
    for comparison in (FRAMEWORKS, MODES):
        for row in _list_judged(analysis, comparison):
            ratio = read_estimate(row, center="ratio")
            ratio = ratio if comparison.measure == "time ratio" else invert_estimate(ratio)
            subject, reference = _name_sides(row)
            found[(reference, subject) if ratio.center >= 1 else (subject, reference)] = Judged(
                ratio=ratio if ratio.center >= 1 else invert_estimate(ratio),
                is_different=row["decision"] in ("slower", "faster"),
            )
    return found


def _judge_all(works: Iterable[list[Row]], known: Mapping[tuple[Key, Key], Judged]) -> dict[tuple[Key, Key], Judged]:
    """Return what is known of every two programs of a kind of work, by (faster, slower)."""
    pairs = {
        (_name_key(faster), _name_key(slower)): (slower, faster)
        for own in works
        for faster, slower in combinations(own, 2)
    }
    # In a table their order is open where their times are equal.
    found = {key: known.get(key) or known.get((key[1], key[0])) for key in pairs}
    others = {key: _estimate(*pairs[key]) for key, judged in found.items() if judged is None}
    judged_together = zip(others.items(), judge_together([*others.values()]), strict=True)
    own = {key: Judged(ratio=ratio, is_different=one.is_different) for (key, ratio), one in judged_together}
    return {key: judged or own[key] for key, judged in found.items()}


def _estimate(slower: Row, faster: Row) -> Estimate:
    sides = zip(SIDES, (slower, faster), strict=True)
    return estimate_pair({f"{name}_{side}": value for side, row in sides for name, value in row.items()})


def _name_key(row: Row) -> Key:
    return str(row["cell_id"]), str(row["environment_id"])


def _name_sides(row: Row) -> tuple[Key, Key]:
    subject, reference = ((str(row[f"cell_id_{side}"]), str(row[f"environment_id_{side}"])) for side in SIDES)
    return subject, reference


def _name_works(works: Iterable[list[Row]]) -> list[str]:
    """Return the name of each kind of work, with its hardware where the same was done on several."""
    firsts = [own[0] for own in works]
    names = [str(row["workload"]) for row in firsts]
    counts = pd.Series(names, dtype="str").value_counts()
    return [
        f"{name}, {_name_hardware(row)}" if counts[name] > 1 else name for name, row in zip(names, firsts, strict=True)
    ]


def _name_hardware(row: Row) -> str:
    return label_hardware(row["cpu_model"], row["num_threads"]) if pd.isna(row["gpu_name"]) else str(row["gpu_name"])
