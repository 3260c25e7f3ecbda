"""Say which program is fastest for each kind of work: as a table of the report, and in sentences."""

import pandas as pd

from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Basis, Said
from collector.answers.fastest import Judged, Ranking, rank_programs
from collector.answers.ratios import find_span
from collector.machines import count_machines
from collector.ratio_words import describe_longer, format_longer, is_percent, quote_longer
from collector.results.frames import Row
from collector.tables.columns import number_column, text_column
from collector.tables.comparisons import INTERVAL_TITLE
from collector.tables.table import Column, Table, make_table
from collector.units import MILLISECOND, NOT_THERE, NUM_TIME_DIGITS, THROUGHPUT, format_number

CAPTION = "The fastest for each kind of work"
ANCHOR = name_anchor(CAPTION)
REMARK = "The fastest differs from all others that did the same work."


def make_fastest_table(analysis: Analysis) -> Table | None:
    """Return a row for each kind of work that two programs or more did; None where there is none."""
    rankings = analysis.derive(rank_programs)
    if not rankings:
        return None
    columns = [
        text_column("work", "work"),
        text_column("fastest", "fastest"),
        number_column("its step time", "seconds", MILLISECOND, num_digits=NUM_TIME_DIGITS),
        number_column("", "throughput_samples_per_s", THROUGHPUT, num_digits=NUM_TIME_DIGITS),
        text_column("next", "next"),
        Column(title="the next takes", sources=("longer",), format=str, align="right"),
        Column(title=INTERVAL_TITLE, sources=("interval",), format=str, align="right"),
        text_column("how sure", "certainty"),
    ]
    return make_table(CAPTION, columns, pd.DataFrame(map(_describe, rankings)), remark=REMARK)


def find_fastest(analysis: Analysis) -> list[Said]:
    """Return two short sentences for each kind of work that two programs or more did."""
    rankings = analysis.derive(rank_programs)
    return [Said(text=_say(ranking), anchor=ANCHOR, basis=_find_basis(ranking)) for ranking in rankings]


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
    row: Row = {
        "work": ranking.work,
        "cell_id": ranking.programs[0]["cell_id"],
        "fastest": " or ".join(_name_tied(ranking)),
        "seconds": ranking.programs[0]["center_step_seconds"],
        "throughput_samples_per_s": ranking.programs[0]["throughput_samples_per_s"],
        "certainty": _state_certainty(ranking),
    }
    if ranking.next is None:
        return row | dict.fromkeys(("next", "longer", "interval"), NOT_THERE)
    program, judged = ranking.next
    longer = {"longer": describe_longer(judged.ratio), "interval": _quote_interval(judged)}
    return row | {"next": program["variant"]} | longer


def _name_tied(ranking: Ranking) -> list[str]:
    """Return the programs that can be the fastest, each with its time where there are several."""
    names = [str(program["variant"]) for program in ranking.tied]
    steps = [float(program["center_step_seconds"]) for program in ranking.tied]
    times = [format_number(step, MILLISECOND, NUM_TIME_DIGITS) for step in steps]
    return names if len(names) == 1 else [f"{name} ({time} ms)" for name, time in zip(names, times, strict=True)]


def _quote_interval(judged: Judged) -> str:
    """Return how much longer the slower program takes, from and to; a dash where both times are equal."""
    _, *ends = format_longer(judged.ratio, judged.size)
    return f"{' to '.join(ends)}{' %' if is_percent(judged.ratio) else ''}" if ends else NOT_THERE


def _state_certainty(ranking: Ranking) -> str:
    shown = "shown"
    if ranking.next is None:
        shown = f"not told apart: {_quote_second(ranking)}"
    elif len(ranking.tied) > 1:
        number, names = len(ranking.tied), ", ".join(str(program["variant"]) for program in ranking.tied)
        which = f"the first {number} not told apart" if ranking.is_first_tied else f"{number} not told apart ({names})"
        shown = f"{which}; that {ranking.next[0]['variant']} takes longer is shown"
    notes = [f"the repeats of {row['variant']} disagree" for row in ranking.disagreeing]
    return "; ".join([shown, *notes])


def _quote_second(ranking: Ranking) -> str:
    """Return what is known of the second program against the first, which are not told apart."""
    second, judged = ranking.programs[1], ranking.behind[0]
    _, *ends = format_longer(judged.ratio, judged.size)
    interval = f" ({' to '.join(ends)})" if ends else ""
    return f"{second['variant']} takes {describe_longer(judged.ratio)}{interval}"


def _say(ranking: Ranking) -> str:
    """Return which program is fastest, or which cannot be told apart, and by how much the next one takes longer."""
    first, *others = ranking.tied
    time = f"{format_number(float(first['center_step_seconds']), MILLISECOND)} ms"
    if others:
        text = f"{ranking.work}: {' and '.join(_name_tied(ranking))} are not told apart."
    else:
        text = f"{ranking.work}: {first['variant']} is fastest, {time}."
    if ranking.next is not None:
        program, judged = ranking.next
        text += f" The next, {program['variant']}, takes {quote_longer(judged.ratio, judged.size)}."
    return text
