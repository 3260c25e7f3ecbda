"""Build the report's figures of ratios, one group per comparison."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from collector.comparisons import (
    DEVICES,
    FRAMEWORKS,
    MODES,
    PRECISIONS,
    STRONG_SCALING,
    WEAK_SCALING,
)
from collector.labels import label_shared
from collector.ratio_words import take_joint_intervals
from collector.report.figure import ROWS, FigureGroup, name_panels
from collector.report.panels import show_panels
from collector.report.plots.measurements import RATIO_PIXELS, plot_ratios

UNSOUND_CAPTION = "A cross marks a ratio with a side that has no repeat under sound conditions."
VERDICT_CAPTION = "The colour is the verdict of the table; the intervals are those of the table, which hold together."


@dataclass(frozen=True, kw_only=True)
class Question:
    """What the ratios of a comparison answer, and the words for both answers."""

    question: str
    caption: str
    of: str
    """What over what the ratio is."""
    better: str
    worse: str
    above_is_better: bool = True


QUESTIONS: Mapping[str, Question] = {
    FRAMEWORKS.name: Question(
        question="Which framework is faster?",
        caption="The step time of the first framework over PyTorch's, with its 95 % interval. Left of 1 the "
        "first is faster.",
        of="time of the first / time of the second",
        better="first faster",
        worse="first slower",
        above_is_better=False,
    ),
    DEVICES.name: Question(
        question="What does the GPU gain?",
        caption="The step time on the CPU over that on the GPU, with its 95 % interval. Right of 1 the GPU is faster.",
        of="time on the CPU / time on the GPU",
        better="GPU faster",
        worse="GPU slower",
    ),
    MODES.name: Question(
        question="What is the mode worth?",
        caption="The step time of the second mode over that of the first, with its 95 % interval; what else "
        "differs stands in its table. Right of 1 the first is faster.",
        of="time of the second / time of the first",
        better="first faster",
        worse="first slower",
    ),
    PRECISIONS.name: Question(
        question="What is the precision worth?",
        caption="The step time in fp32 over that in the first precision, with its 95 % interval; what else "
        "differs stands in its table. Right of 1 the first is faster.",
        of="time in fp32 / time in the first",
        better="first faster",
        worse="first slower",
    ),
    WEAK_SCALING.name: Question(
        question="How far do more GPUs carry, at the same batch per GPU?",
        caption="Throughput of n GPUs over n times that of one; 1 is linear. The global batches are named.",
        of="share of linear",
        better="above linear",
        worse="below linear",
    ),
    STRONG_SCALING.name: Question(
        question="How far do more GPUs carry, at the same global batch?",
        caption="Throughput of n GPUs over n times that of one; 1 is linear.",
        of="share of linear",
        better="above linear",
        worse="below linear",
    ),
}


def show_comparisons(comparisons: Mapping[str, pd.DataFrame]) -> tuple[FigureGroup, ...]:
    """Return the group of each comparison, a panel per model and phase that has a ratio.

    Pairs that were not compared have a row without a mark, ratios of one repeat no interval, unsound sides a cross.
    """
    return tuple(_show_ratios(pairs, name) for name, pairs in comparisons.items())


def _show_ratios(pairs: pd.DataFrame, name: str) -> FigureGroup:
    asked = QUESTIONS[name]
    rows = name_panels(take_joint_intervals(pairs), label_shared(pairs))
    sides = zip(rows["subject"], rows["reference"], rows["rest"], strict=True)
    named = rows.assign(
        name=[f"{subject} / {reference}, {rest}" for subject, reference, rest in sides],
        is_sound=(rows["num_sound_subject"] > 0) & (rows["num_sound_reference"] > 0),
    )
    return show_panels(
        named,
        lambda shown: plot_ratios(
            shown, better=asked.better, worse=asked.worse, above_is_better=asked.above_is_better, of=asked.of
        ),
        "{name}: {ratio} ({scope})",
        question=asked.question,
        caption=" ".join(
            [asked.caption, *([VERDICT_CAPTION] if pairs["p_value"].notna().any() else []), UNSOUND_CAPTION]
        ),
        value="ratio",
        limit=ROWS,
        row_pixels=RATIO_PIXELS,
    )
