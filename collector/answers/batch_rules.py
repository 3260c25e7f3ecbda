"""What a larger batch is worth: samples per second of each batch over the next smaller, of cells otherwise equal."""

from collections.abc import Sequence
from itertools import groupby, islice

import pandas as pd

from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Figures, Said
from collector.answers.measured import find_short_names
from collector.answers.ratios import JudgedRatio, find_basis, find_span, judge_ratios
from collector.batch_pairs import SERIES_COLUMNS, BatchSeries, list_batch_series
from collector.facts import count_things
from collector.labels import FRAMEWORK_NAMES, OPTIONAL_FIELDS, PHASE_NAMES, label_workloads
from collector.machines import SIDES, describe_scope, estimate_pair
from collector.ratio_verdicts import NO_DIFFERENCE
from collector.ratio_words import quote_more
from collector.results.cells import PROTOCOL_FIELDS, select_alone
from collector.results.frames import CELL_COLUMNS, Row
from collector.results.intervals import read_estimate
from collector.statistics import invert_estimate, scale_estimate
from collector.tables.columns import number_column, text_column
from collector.tables.comparisons import INTERVAL_TITLE
from collector.tables.ratio_columns import ratio_column, ratio_interval_column
from collector.tables.table import Table, make_table
from collector.units import RATIO, THROUGHPUT, format_interval, format_number

ENDS = ((0, "low"), (1, "high"))
CAPTION = "What a larger batch is worth: samples per second of each batch over those of the next smaller"
MAX_SERIES = 1
"""Series of a device and phase that are said; the table has all."""
WIDE = 0.25
"""The share of a rate from which on its interval stands beside it: who reads it alone would take it for known."""
MAX_BATCHES = 5
"""Batches of a series that a sentence names: the smallest and the largest ones."""
PLANNED_COLUMNS = tuple(name for name in CELL_COLUMNS if name not in ("batch_size", *PROTOCOL_FIELDS))
"""What is equal in the cells of a series, whether they have a result or not."""
Gains = list[tuple[Row, JudgedRatio]]
"""Pairs of batches, each with its ratio of samples per second."""
MORE, FEWER = "more samples per second", "fewer samples per second"


def find_batches(analysis: Analysis) -> list[Said]:
    """Return for each device and phase the rates at the batches of its series, and what the largest gains."""
    found = analysis.derive(list_series_gains)
    size = sum(len(gains) for _, gains in found)
    ordered = sorted(found, key=lambda item: _name_group(item[0].rows[0]))
    has_several = len({_name_hardware(series.rows[0]) for series, _ in found}) > 1
    said = [
        _say(f"{title}: " if has_several else "", list(own), size, analysis)
        for title, own in groupby(ordered, key=lambda item: _name_group(item[0].rows[0]))
    ]
    return [one for _, one in sorted(filter(None, said), key=lambda item: -item[0])]


def make_batches_table(analysis: Analysis) -> Table | None:
    """Return the samples per second of each batch and of the next smaller one; None where no series has two."""
    gains = [gain for _, own in analysis.derive(list_series_gains) for gain in own]
    if not gains:
        return None
    frame = pd.DataFrame([_describe(pair, judged, len(gains)) for pair, judged in gains])
    columns = [
        text_column("series", "name"),
        number_column("smaller", "rate_reference", THROUGHPUT),
        number_column("larger", "rate_subject", THROUGHPUT),
        ratio_column("ratio", "ratio", RATIO),
        ratio_interval_column(INTERVAL_TITLE, "joint", RATIO),
        text_column("verdict", "verdict"),
    ]
    return make_table(CAPTION, columns, frame)


def _describe(pair: Row, judged: JudgedRatio, size: int) -> Row:
    interval = judged.ratio.find_joint_interval(size)
    ends = {f"joint_{end}": interval[place] for place, end in ENDS} if interval else {}
    rates = {f"rate_{side}": pair[f"batch_size_{side}"] / pair[f"center_step_seconds_{side}"] for side in SIDES}
    verdict = (MORE if judged.ratio.center > 1 else FEWER) if judged.is_different else NO_DIFFERENCE
    cells = {f"cell_id_{side}": pair[f"cell_id_{side}"] for side in SIDES}
    return {"name": judged.name, "ratio": judged.ratio.center, "verdict": verdict} | cells | rates | ends


def _say(
    title: str, found: Sequence[tuple[BatchSeries, Gains]], size: int, analysis: Analysis
) -> tuple[int, Said] | None:
    """Return what is said of some series with their number; None where no difference was shown."""
    judged = [gain for _, gains in found for _, gain in gains]
    if not any(gain.is_different for gain in judged):
        return None
    named = {str(one) for one in analysis.summary["precision"].unique()} if _has_one_precision(analysis) else set()
    names = find_short_names(analysis)
    shown = found[:MAX_SERIES]
    texts = [
        _say_series(names.shorten(_name_without_batch(series, gains), named), series, gains[-1], size)
        for series, gains in shown
    ]
    texts += dict.fromkeys(_say_end(series, analysis) for series, _ in shown)
    more = [f"{len(found) - MAX_SERIES:,} more series: table."] if len(found) > MAX_SERIES else []
    said = Said(
        text=f"{title}{' '.join([*texts, *more])}",
        anchor=name_anchor(CAPTION),
        basis=find_basis(judged),
        figures=Figures(name="ratios of batches", number=size),
    )
    return len(found), said


def _has_one_precision(analysis: Analysis) -> bool:
    return analysis.summary["precision"].nunique() == 1


def _name_without_batch(series: BatchSeries, gains: Gains) -> str:
    pair, judged = gains[-1]
    batch = name_batches(pair)
    return ", ".join(part for part in judged.name.split(", ") if part != batch)


def _say_series(name: str, series: BatchSeries, last: tuple[Row, JudgedRatio], size: int) -> str:
    """Return the rate at each batch, and what the last gives over the next smaller."""
    first, *others = series.rows
    hidden = len(others) - MAX_BATCHES + 1
    rates = [f"{_quote_rate(first, ' samples/s')} at batch {first['batch_size']}"]
    rates += [f"{hidden} more between"] if hidden > 0 else []
    rates += [f"{_quote_rate(row)} at {row['batch_size']}" for row in others[max(hidden, 0) :]]
    return f"{name}: {', '.join(rates)}: {_say_step(*last, size)}."


def _say_step(pair: Row, judged: JudgedRatio, size: int) -> str:
    """Return `batch 256 gives 17.4 % more than batch 64 (13.9 to 20.9)`, or that no difference is shown."""
    sides = [f"batch {pair[f'batch_size_{side}']}" for side in SIDES]
    if not judged.is_different:
        return f"{NO_DIFFERENCE} between {sides[0]} and {sides[1]}"
    more, fewer = sides if judged.ratio.center > 1 else reversed(sides)
    ratio = judged.ratio if judged.ratio.center > 1 else invert_estimate(judged.ratio)
    return f"{more} gives {quote_more(ratio, size, fewer)}"


def _say_end(series: BatchSeries, analysis: Analysis) -> str:
    """Return whether the run has a larger batch of a series, which then has no figure that counts."""
    largest = series.rows[-1]
    rows = select_alone(analysis.summary)
    for name in PLANNED_COLUMNS:
        rows = rows[rows[name].isna() if pd.isna(largest[name]) else rows[name] == largest[name]]
    batch = int(rows["batch_size"].max())
    if batch > largest["batch_size"]:
        return f"Batch {batch} of it has no interval."
    return "No larger one was run."


def _quote_rate(row: Row, unit: str = "") -> str:
    """Return the samples per second; with their own interval, and its repeats, where it reaches WIDE to a side."""
    rate = scale_estimate(invert_estimate(read_estimate(row)), row["batch_size"])
    text = f"{format_number(rate.center, THROUGHPUT)}{unit}"
    low, high = rate.interval or (rate.center, rate.center)
    is_wide = max(high / rate.center, rate.center / low) >= 1 + WIDE
    repeats = count_things(row["num_counted"], "repeat")
    return f"{text} ({format_interval(low, high, THROUGHPUT)}, {repeats})" if is_wide else text


def list_series_gains(analysis: Analysis) -> list[tuple[BatchSeries, Gains]]:
    """Return each series, in the order of the plan, with the gains of its pairs; all gains are judged together."""
    found = list_batch_series(analysis.summary)
    gains = iter(_judge_pairs([pair for series in found for pair in series.pairs]))
    return [(series, list(islice(gains, len(series.pairs)))) for series in found]


def _judge_pairs(pairs: Sequence[Row]) -> Gains:
    """Return for each pair of batches the samples per second of the larger one over the smaller one."""
    estimates = [
        scale_estimate(invert_estimate(estimate_pair(pair)), pair["batch_size_subject"] / pair["batch_size_reference"])
        for pair in pairs
    ]
    named = zip(pairs, _name_series(pairs), estimates, judge_ratios(estimates), strict=True)
    return [
        (
            pair,
            JudgedRatio(
                name=name,
                ratio=estimate,
                is_different=is_different,
                scope=describe_scope(pair, "batch_size"),
                machines=frozenset(pair[f"machines_{side}"] for side in SIDES),
                num_repeats=find_span(pair[f"num_counted_{side}"] for side in SIDES),
            ),
        )
        for pair, name, estimate, is_different in named
    ]


def _name_series(pairs: Sequence[Row]) -> list[str]:
    """Return what each series is of, with its batches as `batch 64 over 1`."""
    if not pairs:
        return []
    names = [name for name in (*SERIES_COLUMNS, "batch_size") if name not in OPTIONAL_FIELDS]
    rows = pd.DataFrame([{name: pair.get(name, pair.get(f"{name}_subject")) for name in names} for pair in pairs])
    return [_name_ends(label, pair) for label, pair in zip(label_workloads(rows), pairs, strict=True)]


def name_batches(pair: Row) -> str:
    """Return `batch 256 over 64`."""
    return f"batch {pair['batch_size_subject']} over {pair['batch_size_reference']}"


def _name_ends(label: str, pair: Row) -> str:
    batches = label.replace(f"batch {pair['batch_size_subject']}", name_batches(pair))
    program = f"{FRAMEWORK_NAMES[pair['framework_subject']]} {pair['mode_subject']}"
    return f"{batches}, {pair['precision_subject']}, {program}"


def _name_group(row: Row) -> str:
    return f"{PHASE_NAMES[row['phase']]} on {_name_hardware(row)}"


def _name_hardware(row: Row) -> str:
    return str(row["cpu_model"] if pd.isna(row["gpu_name"]) else row["gpu_name"])
