"""What a larger batch is worth: samples per second of the largest batch over the smallest, of cells otherwise equal."""

from collections.abc import Sequence
from itertools import groupby

import pandas as pd

from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Said
from collector.answers.measured import find_short_names
from collector.answers.ratios import Family, JudgedRatio, find_span, judge_ratios, say_ratios
from collector.batch_pairs import SERIES_COLUMNS, list_batch_pairs
from collector.facts import join_words, list_some
from collector.labels import FRAMEWORK_NAMES, OPTIONAL_FIELDS, PHASE_NAMES, label_workloads
from collector.machines import SIDES, describe_scope, estimate_pair
from collector.ratio_verdicts import NO_DIFFERENCE
from collector.results.frames import Row
from collector.statistics import invert_estimate, scale_estimate
from collector.tables.columns import number_column, text_column
from collector.tables.comparisons import INTERVAL_TITLE
from collector.tables.ratio_columns import ratio_column, ratio_interval_column
from collector.tables.table import Table, make_table
from collector.units import RATIO, THROUGHPUT

ENDS = ((0, "low"), (1, "high"))
CAPTION = "What a larger batch is worth: samples per second of the largest over those of the smallest"
MAX_WORKS = 6
"""Works that a sentence names."""
MORE, FEWER = "more samples per second", "fewer samples per second"


def find_batches(analysis: Analysis) -> list[Said]:
    """Return for each device and phase which work has several batches, and what the largest gains over the smallest."""
    gains = list_batch_gains(analysis.summary)
    groups = groupby(sorted(gains, key=lambda gain: _name_group(gain[0])), key=lambda gain: _name_group(gain[0]))
    several = len({_name_group(pair) for pair, _ in gains}) > 1
    said = [_say(f" ({title})" if several else "", list(found), len(gains), analysis) for title, found in groups]
    return [one for _, one in sorted(filter(None, said), key=lambda item: -item[0])]


def make_batches_table(analysis: Analysis) -> Table | None:
    """Return the samples per second at both ends of each series of batches; None where none has two."""
    gains = list_batch_gains(analysis.summary)
    if not gains:
        return None
    frame = pd.DataFrame([_describe(pair, judged, len(gains)) for pair, judged in gains])
    columns = [
        text_column("series", "name"),
        number_column("smallest", "rate_reference", THROUGHPUT),
        number_column("largest", "rate_subject", THROUGHPUT),
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
    title: str, gains: Sequence[tuple[Row, JudgedRatio]], size: int, analysis: Analysis
) -> tuple[int, Said] | None:
    """Return the sentence on some gains with their number; None where no difference was shown."""
    judged = [gain for _, gain in gains]
    if not any(gain.is_different for gain in judged):
        return None
    family = Family(name="batches", measure="ratio", above=MORE, below=FEWER, size=size)
    works = list(dict.fromkeys(f"{row['model_subject']} {row['phase_subject']}" for row, _ in gains))
    # A single work is named in the opening: the names of its series are then their batches and programs.
    named = {*works} if len(works) == 1 else set()
    if analysis.summary["precision"].nunique() == 1:
        named.add(str(analysis.summary["precision"].iloc[0]))
    ends = {f"batch {row['batch_size_subject']} over {row['batch_size_reference']}" for row, _ in gains}
    named |= ends if len(ends) == 1 else set()
    which = next(iter(ends)) if len(ends) == 1 else "the largest over the smallest"
    opening = f"{_name_series_works(works, title, analysis)}; {which}"
    said = say_ratios(
        opening, judged, family, anchor=name_anchor(CAPTION), named=named, names=find_short_names(analysis)
    )
    return len(judged), said


def _name_series_works(works: Sequence[str], title: str, analysis: Analysis) -> str:
    """Return which work has several batches, and that it alone has where other work has one."""
    measured = analysis.measured
    others = measured.groupby(["model", "phase"])["batch_size"].nunique() == 1
    only = "Only " if others.any() else ""
    has = "has" if len(works) == 1 else "have"
    return f"{only}{join_words(list_some(works, MAX_WORKS))}{title} {has} several batches"


def list_batch_gains(summary: pd.DataFrame) -> list[tuple[Row, JudgedRatio]]:
    """Return for each series the samples per second of its largest batch over its smallest, as planned."""
    found = list_batch_pairs(summary)
    estimates = [
        scale_estimate(invert_estimate(estimate_pair(pair)), pair["batch_size_subject"] / pair["batch_size_reference"])
        for pair in found
    ]
    named = zip(found, _name_series(found), estimates, judge_ratios(estimates), strict=True)
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


def _name_ends(label: str, pair: Row) -> str:
    largest, smallest = pair["batch_size_subject"], pair["batch_size_reference"]
    batches = label.replace(f"batch {largest}", f"batch {largest} over {smallest}")
    program = f"{FRAMEWORK_NAMES[pair['framework_subject']]} {pair['mode_subject']}"
    return f"{batches}, {pair['precision_subject']}, {program}"


def _name_group(pair: Row) -> str:
    gpu = pair["gpu_name_subject"]
    hardware: str = pair["cpu_model_subject"] if pd.isna(gpu) else gpu
    return f"{PHASE_NAMES[pair['phase_subject']]} on {hardware}"
