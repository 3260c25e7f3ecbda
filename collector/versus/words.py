"""Put a comparison into words: verdicts, the conclusion, the tables, how to read them, and Markdown of all of it."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from collector.cell_words import DEVICE_NAMES
from collector.comparisons import ACROSS
from collector.files import escape_markdown
from collector.ratio_words import NO_DIFFERENCE, format_ratio, format_ratios
from collector.statistics import MAX_REPEATS
from collector.tables.table import (
    MAX_LISTED,
    Column,
    Table,
    make_table,
    number_column,
    ratio_column,
    ratio_interval_column,
    text_column,
)
from collector.units import MIB, NOT_THERE, PERCENT, choose_memory_unit, count_things, format_number, join_some
from collector.versus.question import (
    METRICS,
    CellComparison,
    CompareDocument,
    EnvironmentDifference,
    ExitCode,
    JudgedRatio,
    MetricDescription,
    NoiseDescription,
    Reason,
    ReasonCode,
)

ORDER = ("fails", "worse", "undecided", "better", "same", "not comparable")
"""The verdicts that call for somebody's attention stand first."""
URGENT = ("fails", "worse")
SYMBOLS = {0: "✅", 1: "❌", 2: "❔"}
MAX_FACTS = 30
MAX_VALUES = 3
MAX_VALUE_LETTERS = 60
MACHINES_DIFFER = "The hardware differs: this is a comparison of machines, and says nothing about the software alone."
ALONE = "this ratio alone"
ONE_RUN = (
    "These are ratios of one run: the verdicts rest on its repeats, and are about that run on its machines. Its report "
    "judges all ratios of a table together: where these are some of them, its intervals are wider."
)
BEYOND_FLOOR = (
    f" and the ratio is beyond the floor; within the floor where the interval of {ALONE}, by the repeats of these "
    "runs, lies within it"
)
NO_INTERVALS = (
    "Peak memory has no interval: its repeats are mostly equal, and else differ by whole blocks. The largest repeats "
    "of both sides are compared; the floor of a cell is the most that repeats of a side, or identical runs, differ by."
)


REASONS: Mapping[ReasonCode, str] = {
    "failed": "no repeat of {side} ended ok ({counts})",
    "unsound": "no repeat of {side} was measured under sound conditions ({counts})",
    "not-measured": "{metric} was not measured in {missing} of {number} repeats of {side}",
    "zero": "{metric} of {side} is 0, which has no ratio",
    "several-environments": "the repeats of {side} ran in several environments, which are not averaged",
    "one-repeat": "one repeat of {side} counts, which says nothing about its spread",
    "machines": "the machines differ, one side has a single one, and by how much machines differ is not known: measure "
    "both sides on one machine, or each on several",
    "noise-unknown": "by how much identical runs differ in it is not known: measure one of the sides a second time, or "
    "give --floor",
    "floor-too-wide": "identical runs differ too much for any answer: a machine that is left alone would decide it",
    "more-runs": "more runs of each side would decide it",
    "more-machines": "more machines of each side would decide it",
    "more-repeats": "about {number} repeats a side would decide it",
    "runs-vary": f"even {MAX_REPEATS} repeats a side would not decide it, as identical runs vary too much; several "
    "runs would",
    "near-floor": f"even {MAX_REPEATS} repeats a side would not decide it, so near is the ratio to the floor",
    "near-one": f"even {MAX_REPEATS} repeats a side would not decide it, so near is the ratio to 1",
}


def explain(reason: Reason) -> str:
    return REASONS[reason.code].format(**reason.values)


def name_verdicts(metric: MetricDescription, *, is_within_runs: bool) -> dict[str, str]:
    """Return the words for each verdict, in the order in which they are counted; of one run they are the report's."""
    return {
        "fails": "fails in B",
        "worse": metric.worse,
        "better": metric.better,
        "same": "within the floor",
        "undecided": NO_DIFFERENCE if is_within_runs else "undecided",
        "not comparable": "not comparable",
    }


def name_verdict(verdict: str, document: CompareDocument) -> str:
    return name_verdicts(document.metric, is_within_runs=document.is_within_runs)[verdict]


def conclude(document: CompareDocument, *, fails_undecided: bool) -> tuple[ExitCode, str]:
    """Return the exit code of a document without one, and what was found in a few sentences.

    1: B is worse, in a cell or over a group of cells, or a cell fails in B that A measured. 2: nothing was compared;
    or, if `fails_undecided`, nothing is worse and something is undecided. 0: otherwise. Of two runs the sentence says
    whether B is worse, of two sides of the same runs what B is. Undecided cells are named too: they are not the same.
    """
    cells, metric, counts = document.cells, document.metric, Counter(document.counts)
    words = name_verdicts(metric, is_within_runs=document.is_within_runs)
    number = count_things(len(cells), "cell")
    if len(cells) == counts["not comparable"]:
        return 2, f"Nothing could be compared: of {number} none is comparable."
    groups = [group for group in document.together if group.verdict in ("worse", "better")]
    is_worse = counts["worse"] or counts["fails"] or any(group.verdict == "worse" for group in groups)
    code: ExitCode = 1 if is_worse else 2 if fails_undecided and counts["undecided"] else 0
    means = "".join(f"; {group.label} together are {words[group.verdict]}" for group in groups)
    found = f"of {number} {describe_counts(counts, words)}{means}."
    proof = f" {words['undecided'].capitalize()} is not the same." if counts["undecided"] else ""
    if not document.is_within_runs:
        begin = "B is worse" if is_worse else f"Nothing is shown to be {metric.worse} in B"
        return code, f"{begin}: {found}{'' if is_worse else proof}"
    names = {(cell.name_a, cell.name_b) for cell in cells}
    name_a, name_b = names.pop() if len(names) == 1 else ("A", "B")
    if len(cells) == 1:
        found = f"{words[cells[0].verdict]}, {_quote(cells[0]) or cells[0].reason}."
    return code, f"{name_b} against {name_a} ({metric.title.partition(' (')[0]}, B / A): {found}{proof}"


def describe_counts(counts: Mapping[str, int], words: Mapping[str, str]) -> str:
    """Return how many cells have which verdict: `1 slower, 3 within the floor`."""
    texts = {**words, "fails": "fail in B"}
    return ", ".join(f"{counts[verdict]} {text}" for verdict, text in texts.items() if counts[verdict])


def sort_cells(document: CompareDocument) -> list[CellComparison]:
    """Return the cells with those first that call for attention, in each verdict the largest ratio first.

    Within the same runs no change is looked for: the cells stand as they were planned, as in the table of the run.
    """
    if document.is_within_runs:
        return list(document.cells)
    return sorted(document.cells, key=lambda cell: (ORDER.index(cell.verdict), -(cell.ratio or 0.0)))


def list_side_lines(document: CompareDocument) -> Iterator[str]:
    """Yield what the sides are, and in which fields they differ without being told to."""
    yield f"A: {document.a.label}"
    yield f"B: {document.b.label}"
    if document.inferred:
        found = "; ".join(f"{name}: {a} in A, {b} in B" for name, (a, b) in document.inferred.items())
        yield f"{found} (each side has one)"


def make_difference_table(document: CompareDocument) -> Table:
    differing = document.differences
    rows = pd.DataFrame(
        [(one.fact, _join(one.a), _join(one.b)) for one in differing[:MAX_FACTS]], columns=["fact", "a", "b"]
    )
    more = len(differing) - MAX_FACTS
    remark = f"{count_things(more, 'fact')} more; --json has all." if more > 0 else ""
    columns = [text_column("differs", "fact"), text_column("A", "a"), text_column("B", "b")]
    return make_table("Environments", columns, rows, remark=remark)


def describe_no_difference(document: CompareDocument) -> str:
    if document.environments_known:
        return "The environments of A and B do not differ in anything that was recorded."
    return "The environments of A and B cannot be compared: no repeat of one of them ended ok."


def describe_hardware(differences: Sequence[EnvironmentDifference]) -> str:
    """Return in one line what hardware differs: `GPU (Tesla T4 / NVIDIA L4)`."""
    return ", ".join(f"{one.fact} ({_join(one.a)} / {_join(one.b)})" for one in differences if one.is_hardware)


def _join(values: Sequence[str]) -> str:
    """Return the values in one text, shortened: a side can have a hundred hosts, and a setting any length."""
    short = [value if len(value) <= MAX_VALUE_LETTERS else f"{value[:MAX_VALUE_LETTERS]}..." for value in values]
    return join_some(short, MAX_VALUES) or "not recorded"


def make_cell_table(document: CompareDocument, cells: Sequence[CellComparison]) -> Table:
    """Return a line per cell: both values, the ratio with its interval, the floor, the verdict and its reason.

    The interval is the one that a difference is stated by, or that of the ratio alone where none was tested. Where
    there is a floor, the one that is held against it stands there too.
    """
    shown = cells[:MAX_LISTED]
    rows = pd.DataFrame([cell.model_dump() for cell in shown])
    for end in ("low", "high"):
        rows[f"joint_{end}"] = rows[f"joint_{end}"].astype("float64").fillna(rows[f"ratio_{end}"].astype("float64"))
    rows["words"] = [name_verdict(cell.verdict, document) for cell in shown]
    rows["remarks"] = ["; ".join(filter(None, [cell.reason, *cell.notes])) for cell in shown]
    metric = METRICS[document.metric.name]
    unit = metric.unit
    if unit is MIB:
        unit = choose_memory_unit(value for name in ("value_a", "value_b") for value in rows[name].dropna())
    alone = [(ALONE, "ratio")] if rows["floor"].notna().any() else []
    intervals = [("95 % interval", "joint"), *alone] if metric.has_intervals else []
    names = [text_column("A is", "name_a", priority=6), text_column("B is", "name_b", priority=6)]
    floor = Column(title="floor", sources=("floor",), format=format_floor, align="right", priority=3)
    columns = [
        text_column("cell", "label"),
        *(names if len({(cell.name_a, cell.name_b) for cell in cells}) > 1 else []),
        number_column("A", "value_a", unit, priority=4),
        number_column("B", "value_b", unit, priority=5),
        ratio_column("B / A", "ratio"),
        *(ratio_interval_column(title, name) for title, name in intervals),
        *([floor] if rows["floor"].nunique() > 1 else []),
        text_column("verdict", "words"),
        text_column("on", "scope", priority=2, is_optional=True),
        replace(text_column("note", "remarks", is_optional=True), is_note=True),
    ]
    others = len(cells) - len(rows)
    remark = f"{count_things(others, 'cell')} more; --json has all." if others else ""
    return make_table(f"Cells: {document.metric.title}", columns, rows, remark=remark)


def format_floor(share: float) -> str:
    """Return a relative difference in percent: of 0.087 `8.7 %`."""
    return NOT_THERE if pd.isna(share) else f"{format_number(float(share), PERCENT)} %"


def _quote(found: JudgedRatio) -> str:
    """Return `0.865 (0.813 to 0.920)`, the ratio and the interval that its verdict is read from, then with a floor
    `; this ratio alone 0.830 to 0.900, floor 3 %`; empty without a ratio.
    """
    if found.ratio is None:
        return ""
    if found.joint_low is None or found.joint_high is None:
        return format_ratio(found.ratio)
    interval, floor = format_ratios(found.joint_low, found.joint_high), ""
    if found.floor is not None and found.ratio_low is not None and found.ratio_high is not None:
        alone = format_ratios(found.ratio_low, found.ratio_high)
        interval, floor = f"{interval}; {ALONE} {alone}", f", floor {format_floor(found.floor)}"
    return f"{format_ratio(found.ratio)} ({interval}){floor}"


def list_group_lines(document: CompareDocument) -> Iterator[str]:
    """Yield the ratio over each group of cells, with the intervals that its verdict is read from."""
    for group in document.together:
        label = f"{group.label[0].upper()}{group.label[1:]} together (geometric mean)"
        yield f"{label}: {_quote(group)}: {name_verdict(group.verdict, document)}."


def list_unpaired_lines(document: CompareDocument) -> Iterator[str]:
    for side, cells in (("A", document.only_in_a), ("B", document.only_in_b)):
        if cells:
            yield f"Only in {side}, {count_things(len(cells), 'cell')}:"
        yield from (f"  {cell.label}" for cell in cells[:MAX_LISTED])
        if len(cells) > MAX_LISTED:
            yield f"  and {len(cells) - MAX_LISTED} more; --json has all"


def list_method_lines(document: CompareDocument) -> Iterator[str]:
    """Yield how to read the ratios, which intervals hold together, and what each floor comes from."""
    yield document.metric.reading
    if not METRICS[document.metric.name].has_intervals:
        yield NO_INTERVALS
    found = (*document.cells, *document.together)
    number = sum(one.p_value is not None for one in found)
    if number:
        noise = "" if document.is_within_runs else ", which allows for what identical runs differ by,"
        floor = BEYOND_FLOOR if any(one.floor is not None for one in found) else ""
        words = f"{document.metric.worse} or {document.metric.better}"
        yield f"B is called {words} where the 95 % interval{noise} excludes 1{floor} (docs/compare.md)."
        if number > 1:
            families = "those of cells and those of their means each" if document.is_within_runs else "all of them"
            yield f"These intervals hold together, {families}."
        yield from map(describe_noise, document.noise)
    if number and document.is_within_runs and len(document.a.run_ids) == 1:
        yield ONE_RUN


def describe_noise(noise: NoiseDescription) -> str:
    """Return the floor of one kind of cells, what it does to verdicts, and its source, in a sentence or two."""
    where = "" if noise.is_same_machine else f" {ACROSS}"
    cells = f"{DEVICE_NAMES[noise.device]} cells{' with tenants' if noise.is_shared else ''}{where}"
    number = count_things(len(noise.run_ids), "identical run")
    source = f"{number} of {count_things(noise.num_cells, 'cell')} ({join_some(noise.run_ids, MAX_VALUES)})"
    why = {
        "given": "as given by --floor",
        "default": "the default, since the store has no two identical runs of such cells; a second run of A or B would "
        "measure it (docs/compare.md)",
        "measured": f"as measured, by {source}",
    }[noise.source]
    return (
        f"Floor {format_floor(noise.floor)} for {cells}: a smaller difference is never called slower or faster; {why}."
    )


def write_markdown(document: CompareDocument) -> str:
    """Return the comparison as Markdown for a pull request: what counts on top, the rest folded, nothing as markup.

    About 30 kB at the most: a comment on GitHub holds 65,536 letters.
    """
    return "\n".join(_list_parts(document)) + "\n"


def escape_comment(text: str) -> str:
    """Return one line of `text` in which nothing is markup, mentions a user or refers to an issue.

    Hosts and settings can have any text. GitHub makes links of `@name` and `#12` whatever is escaped, but not across a
    comment of HTML.
    """
    escaped = escape_markdown(text.replace("&", "&amp;")).replace("\\<", "&lt;").replace("\\>", "&gt;")
    escaped = escaped.replace("~", "\\~").replace("://", ":<!-- -->//").replace("www.", "www<!-- -->.")
    return re.sub(r"(@|\\#)", r"\1<!-- -->", escaped)


def _list_parts(document: CompareDocument) -> Iterator[str]:
    yield f"**{SYMBOLS[document.exit_code]} {escape_comment(document.conclusion)}**\n"
    yield "<br>\n".join(map(escape_comment, list_side_lines(document))) + "\n"
    if document.is_between_machines:
        yield f"**{MACHINES_DIFFER}**\n"
    if document.differences:
        yield from _write_table(make_difference_table(document))
    else:
        yield f"{describe_no_difference(document)}\n"
    yield from (f"- {escape_comment(line)}" for line in document.warnings)
    cells = sort_cells(document)
    if urgent := [cell for cell in cells if cell.verdict in URGENT]:
        yield ""
        yield from _write_table(make_cell_table(document, urgent))
    yield from (f"\n{escape_comment(line)}" for line in list_group_lines(document))
    yield f"\n<details><summary>All {len(cells)} cells</summary>\n"
    yield from _write_table(make_cell_table(document, cells))
    yield "</details>"
    for title, lines in (
        ("How to read this", [*list_method_lines(document)]),
        ("Cells that were not compared", [*list_unpaired_lines(document)]),
    ):
        if lines:
            yield f"\n<details><summary>{title}</summary>\n"
            yield from (f"- {escape_comment(line)}" for line in lines)
            yield "\n</details>"


def _write_table(table: Table) -> Iterator[str]:
    yield f"| {' | '.join(map(escape_comment, table.headings))} |\n|{'---|' * len(table.columns)}"
    yield from (f"| {' | '.join(map(escape_comment, texts))} |" for texts in table.format_rows())
    yield f"\n{escape_comment(table.remark)}\n" if table.remark else ""
