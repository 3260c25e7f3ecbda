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
from collector.machines import SIDES, estimate_pair
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
    known = _select_sound(select_alone(analysis.summary))
    rows = known.assign(ran_on=known["machines"].mask(known["num_machines"] > 1, SEVERAL_MACHINES))
    groups = [list_rows(own) for _, own in rows.groupby(list(WORK_COLUMNS), dropna=False, sort=False)]
    works = [
        sorted(own, key=lambda row: float(row["center_step_seconds"]))
        for own in groups
        if len({(row["framework"], row["mode"]) for row in own}) > 1
    ]
    judged = _list_judged(analysis, (FRAMEWORKS, MODES))
    judged |= _judge_others(works, judged)
    return [
        Ranking(work=name, programs=tuple(own), behind=tuple(judged[_name_pair(own[0], row)] for row in own[1:]))
        for name, own in zip(_name_works(works), works, strict=True)
    ]


def list_cheapest(analysis: Analysis) -> list[Cheapest]:
    """Return the cheapest cell of each work, in the order of the plan; none without prices."""
    priced = _list_priced(analysis)
    works: dict[tuple[str, ...], list[Priced]] = {}
    for one in priced:
        work = tuple("" if pd.isna(one.row[name]) else str(one.row[name]) for name in PRICED_WORK_COLUMNS)
        works.setdefault(work, []).append(one)
    verdicts = _list_judged(analysis, (FRAMEWORKS, MODES, PRECISIONS))
    return [_find_cheapest(cells, verdicts, len(priced)) for cells in works.values()]


def _find_cheapest(cells: Sequence[Priced], verdicts: Mapping[frozenset[Key], Judged], number: int) -> Cheapest:
    """Return the cheapest of the cells of a work, which are among `number` that have a cost.

    A cell at the same price an hour of which a table says how its time compares is told from the cheapest by that
    verdict: one pair has one verdict. Any other is, where its interval begins above the cheapest one's end.
    """
    first, *others = sorted(cells, key=lambda one: one.cost.center)

    def is_told(other: Priced) -> bool:
        verdict = verdicts.get(_name_pair(first.row, other.row))
        if verdict is not None and other.offer.price_per_hour == first.offer.price_per_hour:
            return verdict.is_different
        own, theirs = (one.cost.find_joint_interval(number) for one in (first, other))
        return own is not None and theirs is not None and own[1] < theirs[0]

    return Cheapest(first=first, tied=tuple(one for one in others if not is_told(one)))


def _list_priced(analysis: Analysis) -> list[Priced]:
    """Return each sound row of the summary with an interval and a price, with its cheapest offer."""
    cells = () if analysis.costs is None else analysis.costs.cells
    offers = {(cell.cell_id, cell.label): cell.offers[0] for cell in cells if cell.offers}
    priced = []
    for row in list_rows(_select_sound(analysis.summary)):
        if offer := offers.get((row["cell_id"], row["label"])):
            hours = THOUSAND / row["batch_size"] / SECONDS_PER_HOUR
            cost = scale_estimate(read_estimate(row), hours * offer.price_per_hour)
            priced.append(Priced(row=row, cost=cost, offer=offer))
    return priced


def _select_sound(summary: pd.DataFrame) -> pd.DataFrame:
    return summary[(summary["num_sound"] > 0) & summary["log_standard_error"].notna()]


def _list_judged(analysis: Analysis, comparisons: Iterable[Comparison]) -> dict[frozenset[Key], Judged]:
    """Return what the tables say of the pairs that they judge."""
    found = {}
    for comparison in comparisons:
        pairs = analysis.comparisons[comparison.name]
        for row in list_rows(select_alone(pairs[pairs["p_value"].notna()])):
            ratio = read_estimate(row, center="ratio")
            ratio = ratio if ratio.center >= 1 else invert_estimate(ratio)
            sides = frozenset((str(row[f"cell_id_{side}"]), str(row[f"environment_id_{side}"])) for side in SIDES)
            found[sides] = Judged(ratio=ratio, is_different=row["decision"] in ("slower", "faster"))
    return found


def _judge_others(works: Iterable[list[Row]], known: Mapping[frozenset[Key], Judged]) -> dict[frozenset[Key], Judged]:
    """Return what is known of every two programs of a kind of work that no table has, judged together."""
    ratios = {
        pair: estimate_pair(slower, faster)
        for own in works
        for faster, slower in combinations(own, 2)
        if (pair := _name_pair(faster, slower)) not in known
    }
    judged = zip(ratios.items(), judge_together([*ratios.values()]), strict=True)
    return {pair: Judged(ratio=ratio, is_different=one.is_different) for (pair, ratio), one in judged}


def _name_pair(*rows: Row) -> frozenset[Key]:
    return frozenset((str(row["cell_id"]), str(row["environment_id"])) for row in rows)


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
