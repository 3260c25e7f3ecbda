"""Rank the programs that did the same work: which is first, which second, and whether they differ.

Whether two programs differ is what the table of their comparison says, if one has both. The pairs that none has, as
TensorFlow against JAX, are judged together. So a program that was chosen for its time is only said to be faster than
another where that remains among all pairs of a table.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from collector.analysis import Analysis
from collector.answers.pairs import list_usable_pairs
from collector.answers.ratios import judge_ratios
from collector.comparisons import FRAMEWORKS, MODES
from collector.labels import label_hardware
from collector.machines import SIDES, estimate_pair
from collector.ratio_verdicts import count_tested
from collector.results.cells import PROTOCOL_FIELDS, select_alone
from collector.results.frames import CELL_COLUMNS, Row, list_rows
from collector.statistics import Estimate, invert_estimate

WORK_COLUMNS = (
    *(name for name in CELL_COLUMNS if name not in ("framework", "mode", *PROTOCOL_FIELDS)),
    *("hardware_id", "ran_on"),
)
"""What is equal in cells that did the same work on the same machines."""
READ_COLUMNS = (
    *CELL_COLUMNS,
    *("hardware_id", "environment_id", "gpu_name", "cpu_model", "num_threads", "workload", "variant", "cell_id"),
    *("center_step_seconds", "log_standard_error", "degrees_of_freedom", "num_counted"),
    *("least_repeat_seconds", "most_repeat_seconds", "disagreement"),
    *("num_machines", "machines", "machine_step_seconds", "throughput_samples_per_s"),
)
SEVERAL_MACHINES = "several"
Key = tuple[str, str]
"""cell_id, environment_id."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What is known of two programs."""

    ratio: Estimate
    """The time of the slower one over that of the faster one."""
    is_different: bool
    size: int
    """How many ratios were judged together with this one."""


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Holds the programs that did one kind of work on the same machines."""

    work: str
    programs: tuple[Row, ...]
    """Rows of the summary with READ_COLUMNS, the least step time first; two or more."""
    behind: tuple[Judged, ...]
    """Of each program but the first, its time over that of the first."""
    level_with_second: tuple[Row, ...]
    """The programs behind the second whose times are told from the first's and not from its own."""

    @property
    def second(self) -> tuple[Row, Judged]:
        """The program with the second least step time."""
        return self.programs[1], self.behind[0]

    @property
    def further(self) -> list[tuple[Row, Judged]]:
        """What must be said of the programs behind the second: they are not told from the first, or the first that is.

        Where the second is not told from the first, the quickest program that is shown to take longer is among them: by
        its time alone, nobody would know whether anything is slower.
        """
        others = list(zip(self.programs[2:], self.behind[1:], strict=True))
        alike = [(row, judged) for row, judged in others if not judged.is_different]
        if self.behind[0].is_different:
            return alike
        return [*alike, *[(row, judged) for row, judged in others if judged.is_different][:1]]


def rank_programs(analysis: Analysis) -> list[Ranking]:
    """Return a ranking for each kind of work that two programs or more did, in the order of the plan.

    Programs count where they had the device to themselves, have an interval and a repeat under sound conditions. Those
    on one machine are ranked with others on it, those on several machines with each other.
    """
    summary = select_alone(analysis.summary)
    known = summary[(summary["num_sound"] > 0) & summary["log_standard_error"].notna()]
    several = known["num_machines"] > 1
    rows = known[list(READ_COLUMNS)].assign(ran_on=known["machines"].mask(several, SEVERAL_MACHINES))
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
            level_with_second=tuple(
                row
                for row in own[2:]
                if judged[_name_key(own[0]), _name_key(row)].is_different
                and not judged[_name_key(own[1]), _name_key(row)].is_different
            ),
        )
        for name, own in zip(_name_works(works), works, strict=True)
    ]


def _index_judged(analysis: Analysis) -> dict[tuple[Key, Key], Judged]:
    """Return what the tables of frameworks and modes say, by (faster, slower)."""
    found = {}
    for comparison in (FRAMEWORKS, MODES):
        pairs = analysis.comparisons[comparison.name]
        size = count_tested(pairs)
        for pair in list_usable_pairs(pairs, comparison):
            is_time_ratio = comparison.measure == "time ratio"
            ratio = pair.judged.ratio if is_time_ratio else invert_estimate(pair.judged.ratio)
            subject, reference = (
                (str(pair.row[f"cell_id_{side}"]), str(pair.row[f"environment_id_{side}"])) for side in SIDES
            )
            order = (reference, subject) if ratio.center >= 1 else (subject, reference)
            found[order] = Judged(
                ratio=ratio if ratio.center >= 1 else invert_estimate(ratio),
                is_different=pair.judged.is_different,
                size=size,
            )
    return found


def _judge_all(works: Iterable[list[Row]], known: Mapping[tuple[Key, Key], Judged]) -> dict[tuple[Key, Key], Judged]:
    """Return what is known of every two programs of a kind of work, by (faster, slower)."""
    pairs = [(faster, slower) for own in works for faster, slower in combinations(own, 2)]
    keys = [(_name_key(faster), _name_key(slower)) for faster, slower in pairs]
    others = [(key, _estimate(*pair)) for key, pair in zip(keys, pairs, strict=True) if _find(key, known) is None]
    different = judge_ratios([estimate for _, estimate in others])
    own = {
        key: Judged(ratio=estimate, is_different=is_different, size=len(others))
        for (key, estimate), is_different in zip(others, different, strict=True)
    }
    return {key: judged for key in keys for judged in [_find(key, known) or own[key]]}


def _find(key: tuple[Key, Key], known: Mapping[tuple[Key, Key], Judged]) -> Judged | None:
    """Return what a table says of two programs; their order is open where their times are equal."""
    return known.get(key) or known.get((key[1], key[0]))


def _estimate(faster: Row, slower: Row) -> Estimate:
    sides = zip(SIDES, (slower, faster), strict=True)
    return estimate_pair({f"{name}_{side}": value for side, row in sides for name, value in row.items()})


def _name_key(row: Row) -> Key:
    return str(row["cell_id"]), str(row["environment_id"])


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
