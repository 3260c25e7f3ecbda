"""Say which program is first and which second for each kind of work: as a table of the report, and in sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Basis, Said
from collector.answers.fastest import Judged, Ranking, rank_programs
from collector.answers.measured import ShortNames, find_short_names
from collector.answers.ratios import find_span
from collector.comparisons import FP32, WITHOUT_TF32
from collector.facts import join_words
from collector.machines import count_machines
from collector.ratio_verdicts import NO_DIFFERENCE
from collector.ratio_words import (
    choose_time_digits,
    compare_longer,
    describe_longer,
    format_longer,
    quote_ends,
    quote_longer,
)
from collector.results.cells import select_alone
from collector.results.frames import Row
from collector.tables.cell_times import TIME_SOURCES, quote_repeats
from collector.tables.columns import number_column, text_column
from collector.tables.comparisons import INTERVAL_TITLE
from collector.tables.table import Column, Table, make_table
from collector.units import MILLISECOND, NUM_TIME_DIGITS, THROUGHPUT, format_number

CAPTION = "The fastest for each kind of work"
ANCHOR = name_anchor(CAPTION)
Place = tuple[str, str]
"""A device and a precision."""


def make_fastest_table(analysis: Analysis) -> Table | None:
    """Return a row for each kind of work that two programs or more did; None where there is none."""
    rankings = analysis.derive(rank_programs)
    if not rankings:
        return None
    names, planned = find_short_names(analysis), _count_programs(analysis)
    columns = [
        text_column("work", "work"),
        replace(text_column("first", "first"), is_finding=True),
        _time_column("first_time"),
        replace(number_column("", "throughput_samples_per_s", THROUGHPUT), is_finding=True),
        replace(text_column("second", "second"), is_finding=True),
        _time_column("second_time"),
        Column(title="the second takes", sources=("longer",), format=str, is_finding=True),
        Column(title=INTERVAL_TITLE, sources=("interval",), format=str, align="right", is_finding=True),
        text_column("programs that did it", "num_programs"),
        text_column("their repeats", "repeats"),
        text_column("also", "further", is_optional=True),
    ]
    table = make_table(CAPTION, columns, pd.DataFrame([_describe(one, names, planned) for one in rankings]))
    return replace(table, alike=_describe_precisions(rankings, analysis)).lift_alike()


def _describe_precisions(rankings: Sequence[Ranking], analysis: Analysis) -> str:
    """Return which precision is meant by fp32, and which ones no row is of: the fastest of all may be in these."""
    ranked = {str(row["precision"]) for one in rankings for row in one.programs}
    others = [str(one) for one in analysis.measured["precision"].unique() if one not in ranked]
    texts = [f"{FP32} {WITHOUT_TF32}"] if FP32 in ranked else []
    texts += [f"not ranked, as no two programs did the same work in it: {', '.join(others)}"] if others else []
    return "; ".join(texts)


def find_fastest(analysis: Analysis) -> list[Said]:
    """Return a sentence for each kind of work that two programs or more did."""
    rankings = analysis.derive(rank_programs)
    return [Said(text=_say(ranking), anchor=ANCHOR, basis=_find_basis(ranking)) for ranking in rankings]


def _time_column(source: str) -> Column:
    return Column(title="step", sources=(source,), format=str, unit=MILLISECOND, align="right", is_finding=True)


def _find_basis(ranking: Ranking) -> Basis:
    """Return the machines of a kind of work: the programs are ranked on one machine, or each on several."""
    rows = ranking.programs
    number = max(int(row["num_machines"]) for row in rows)
    return Basis(
        scope=count_machines(number, "card" if rows[0]["device"] == "gpu" else "machine"),
        machines=frozenset(str(row["machines"]) for row in rows),
        num_repeats=find_span(row["num_counted"] for row in rows),
    )


def _describe(ranking: Ranking, names: ShortNames, num_planned: Mapping[Place, int]) -> Row:
    first, (second, judged), num_digits = ranking.programs[0], ranking.second, _choose_digits(ranking)
    further = [_name_further(row, other) for row, other in ranking.further]
    disagreeing = [f"{row['variant']}: {text}" for row in (first, second) if (text := _quote_repeats(row))]
    return {
        "work": names.shorten(ranking.work),
        "cell_id": " ".join(str(row["cell_id"]) for row in ranking.programs),
        "first": _name_first(ranking),
        "first_time": _format_time(first, num_digits),
        "throughput_samples_per_s": first["throughput_samples_per_s"],
        "second": _name_second(ranking),
        "second_time": _format_time(second, num_digits),
        "longer": describe_longer(judged.ratio) if judged.is_different else NO_DIFFERENCE,
        "interval": quote_ends(judged.ratio, judged.size),
        "num_programs": _say_programs(ranking, num_planned),
        "repeats": join_words(str(row["num_counted"]) for row in (first, second)),
        "further": "; ".join([*disagreeing, *further]),
    }


def _count_programs(analysis: Analysis) -> dict[Place, int]:
    """Return how many programs the run has on each device in each precision, for whatever work.

    These are fewer than the programs of the grid of the plan (`collector.answers.planned.PlannedGrid`), which has those
    of cells with tenants and of cells left out too, and modes that no cell has: none of them can be in this table.
    """
    return {
        (str(device), str(precision)): int(own["variant"].nunique())
        for (device, precision), own in select_alone(analysis.summary).groupby(["device", "precision"])
    }


def _say_programs(ranking: Ranking, num_planned: Mapping[Place, int]) -> str:
    """Return `2 of 4`: with how many of the run's programs for its device and precision the work was measured."""
    first = ranking.programs[0]
    number = len({row["variant"] for row in ranking.programs})
    return f"{number:,} of {num_planned[str(first['device']), str(first['precision'])]:,}"


def _name_first(ranking: Ranking) -> str:
    """Return the program of the least step time, or which are not told apart: none of these is the winner."""
    first, (second, judged) = ranking.programs[0], ranking.second
    if judged.is_different:
        return str(first["variant"])
    others = (row for row, other in ranking.further if not other.is_different)
    return f"not told apart: {', '.join(str(row['variant']) for row in (first, second, *others))}"


def _name_second(ranking: Ranking) -> str:
    """Return the program of the second least step time; with those not told from it, if the first is ahead of it."""
    second, judged = ranking.second
    if not judged.is_different:
        return str(second["variant"])
    # The step time and the amount beside it are the second's alone.
    level = [f"{row['variant']} ({_format_time(row, NUM_TIME_DIGITS)} ms)" for row in ranking.level_with_second]
    return "; not told from it: ".join(filter(None, [str(second["variant"]), ", ".join(level)]))


def _choose_digits(ranking: Ranking) -> int:
    """Return the digits of both times by which dividing them gives the ratio beside them."""
    second, judged = ranking.second
    return choose_time_digits(
        float(ranking.programs[0]["center_step_seconds"]), float(second["center_step_seconds"]), judged.ratio
    )


def _format_time(row: Row, num_digits: int) -> str:
    return format_number(float(row["center_step_seconds"]), MILLISECOND, num_digits)


def _quote_ends(judged: Judged) -> str:
    """Return how much longer the slower program takes, from and to; empty where both times are equal."""
    _, *ends = format_longer(judged.ratio, judged.size)
    return " to ".join(ends)


def _quote_repeats(row: Row) -> str:
    return quote_repeats(*(row[name] for name in TIME_SOURCES[1:]))


def _name_further(row: Row, judged: Judged) -> str:
    """Return `TensorFlow graph: 88.4 % longer than the first (82.8 to 94.2)`, or that no difference is shown."""
    if judged.is_different:
        return f"{row['variant']}: {compare_longer(judged.ratio, 'the first')} ({_quote_ends(judged)})"
    return f"{_name_with_time(row)}: {NO_DIFFERENCE} from the first"


def _say_further(row: Row, judged: Judged, first: Row) -> str:
    """Return `TensorFlow graph takes 88.4 % longer than PyTorch eager (82.8 to 94.2)`, or that none is shown."""
    if judged.is_different:
        return f"{row['variant']} takes {compare_longer(judged.ratio, str(first['variant']))} ({_quote_ends(judged)})"
    return f"{NO_DIFFERENCE} between {first['variant']} and {_name_with_time(row)}"


def _name_with_time(row: Row, num_digits: int = NUM_TIME_DIGITS) -> str:
    """Return `PyTorch eager (24.39 ms)`."""
    time = f"{_format_time(row, num_digits)} ms"
    return f"{row['variant']} ({'; '.join(filter(None, [time, _quote_repeats(row)]))})"


def _say(ranking: Ranking) -> str:
    """Return who is first and by how much before the second, or that no difference between them is shown."""
    first, (second, judged) = ranking.programs[0], ranking.second
    names = [_name_with_time(row, _choose_digits(ranking)) for row in (first, second)]
    if judged.is_different:
        found = f"{names[0]}, then {names[1]}, which takes {quote_longer(judged.ratio, judged.size)}"
    else:
        found = f"{NO_DIFFERENCE} between {names[0]} and {names[1]}"
    further = (_say_further(row, other, first) for row, other in ranking.further)
    return f"{ranking.work}: {'; '.join([found, *further])}."
