"""Say which program is first and which second for each kind of work: as a table of the report, and in sentences."""

import pandas as pd

from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Basis, Said
from collector.answers.fastest import Judged, Ranking, rank_programs
from collector.answers.ratios import find_span
from collector.machines import count_machines
from collector.ratio_verdicts import NO_DIFFERENCE
from collector.ratio_words import choose_time_digits, describe_longer, format_longer
from collector.results.frames import Row
from collector.tables.cell_times import TIME_SOURCES, format_cell_time, quote_repeats
from collector.tables.columns import number_column, text_column
from collector.tables.table import Column, Table, make_table
from collector.units import MILLISECOND, NUM_TIME_DIGITS, THROUGHPUT, format_number

CAPTION = "The fastest for each kind of work"
ANCHOR = name_anchor(CAPTION)
DIFFERENCE_TITLE = "the second takes (95 % interval)"
REMARK = "Where no difference is shown, either program may be the faster one."


def make_fastest_table(analysis: Analysis) -> Table | None:
    """Return a row for each kind of work that two programs or more did; None where there is none."""
    rankings = analysis.derive(rank_programs)
    if not rankings:
        return None
    difference = Column(title=DIFFERENCE_TITLE, sources=("difference",), format=str, is_finding=True)
    columns = [
        text_column("work", "work"),
        text_column("first", "first"),
        _time_column("first_time"),
        number_column("", "throughput_samples_per_s", THROUGHPUT, num_digits=NUM_TIME_DIGITS),
        text_column("second", "second"),
        _time_column("second_time"),
        difference,
        text_column("further programs", "further", is_optional=True),
    ]
    return make_table(CAPTION, columns, pd.DataFrame(map(_describe, rankings)), remark=REMARK)


def find_fastest(analysis: Analysis) -> list[Said]:
    """Return a sentence for each kind of work that two programs or more did."""
    rankings = analysis.derive(rank_programs)
    return [Said(text=_say(ranking), anchor=ANCHOR, basis=_find_basis(ranking)) for ranking in rankings]


def _time_column(source: str) -> Column:
    return Column(title="step time", sources=(source,), format=str, unit=MILLISECOND, align="right")


def _find_basis(ranking: Ranking) -> Basis:
    """Return the machines of a kind of work: the programs are ranked on one machine, or each on several."""
    rows = ranking.programs
    number = max(int(row["num_machines"]) for row in rows)
    return Basis(
        scope=count_machines(number, "card" if rows[0]["device"] == "gpu" else "machine"),
        machines=frozenset(str(row["machines"]) for row in rows),
        num_repeats=find_span(row["num_counted"] for row in rows),
    )


def _describe(ranking: Ranking) -> Row:
    first, (second, judged) = ranking.programs[0], ranking.second
    num_digits = _choose_digits(ranking)
    further = (_say_further(row, other, first) for row, other in ranking.further)
    return {
        "work": ranking.work,
        "cell_id": first["cell_id"],
        "first": first["variant"],
        "first_time": _format_time(first, num_digits),
        "throughput_samples_per_s": first["throughput_samples_per_s"],
        "second": second["variant"],
        "second_time": _format_time(second, num_digits),
        "difference": _state_difference(judged),
        "further": "; ".join(further),
    }


def _choose_digits(ranking: Ranking) -> int:
    """Return the digits of both times by which dividing them gives the ratio beside them."""
    first, (second, judged) = ranking.programs[0], ranking.second
    times = (float(row["center_step_seconds"]) for row in (first, second))
    return choose_time_digits(*times, judged.ratio)


def _format_time(row: Row, num_digits: int = NUM_TIME_DIGITS) -> str:
    return format_cell_time(*(row[name] for name in TIME_SOURCES), num_digits=num_digits)


def _state_difference(judged: Judged) -> str:
    """Return `12.2 % longer (10.9 to 13.5)`, or `no difference shown (0.9 % longer; −47.1 to 92.3)`."""
    longer, ends = describe_longer(judged.ratio), _quote_ends(judged)
    if judged.is_different:
        return f"{longer} ({ends})"
    return f"{NO_DIFFERENCE} ({'; '.join(filter(None, [longer, ends]))})"


def _quote_ends(judged: Judged) -> str:
    """Return how much longer the slower program takes, from and to; empty where both times are equal."""
    _, *ends = format_longer(judged.ratio, judged.size)
    return " to ".join(ends)


def _say_further(row: Row, judged: Judged, first: Row) -> str:
    """Return `TensorFlow graph takes 88.4 % longer than PyTorch eager (82.8 to 94.2)`, or that no difference is shown."""
    if judged.is_different:
        return f"{row['variant']} takes {describe_longer(judged.ratio)} than {first['variant']} ({_quote_ends(judged)})"
    return f"{NO_DIFFERENCE} between {first['variant']} and {_name_with_time(row)}"


def _name_with_time(row: Row, num_digits: int = NUM_TIME_DIGITS) -> str:
    """Return `PyTorch eager (24.39 ms)`."""
    time = f"{format_number(float(row['center_step_seconds']), MILLISECOND, num_digits)} ms"
    repeats = quote_repeats(*(row[name] for name in TIME_SOURCES[1:]))
    return f"{row['variant']} ({'; '.join(filter(None, [time, repeats]))})"


def _say(ranking: Ranking) -> str:
    """Return who is first and by how much before the second, or that no difference between them is shown."""
    first, (second, judged), num_digits = ranking.programs[0], ranking.second, _choose_digits(ranking)
    names = [_name_with_time(row, num_digits) for row in (first, second)]
    if judged.is_different:
        found = f"{names[0]}, then {names[1]}, which takes {_state_difference(judged)}"
    else:
        found = f"{NO_DIFFERENCE} between {names[0]} and {names[1]}"
    further = (_say_further(row, other, first) for row, other in ranking.further)
    return f"{ranking.work}: {'; '.join([found, *further])}."
