"""Judge a claim that latency falls by about some share, as the mean over the study's models at its own work.

The study states one figure for four models, so its mean is what is judged: its own table has 18.6, 6.4, 9.8 and 6.1 %,
of which one alone lies within 10 to 20 %, and a mean of 10.3 %. A rule that asked it of each model would call the study
itself not reproduced.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import sqrt

import pandas as pd

from collector.claims.measurements import find_stated_batches
from collector.claims.study import Study
from collector.claims.verdicts import (
    ClaimVerdict,
    GainClaim,
    Interval,
    ReasonedVerdict,
    explain_missing_intervals,
    place_interval,
)
from collector.facts import join_words
from collector.labels import label_shared
from collector.machines import SIDES
from collector.ratio_verdicts import describe_ratio
from collector.results.frames import Row, list_rows
from collector.results.intervals import read_estimate
from collector.units import PERCENT, format_interval, format_number

# "About 15 %": from 10 to 20 %.
GAIN_TOLERANCE = 0.05
# Of several readings of a model's work the one that is kindest to the claim counts.
KINDEST_FIRST: tuple[ClaimVerdict, ...] = ("reproduced", "not decided", "not reproduced")


@dataclass(frozen=True, kw_only=True)
class Gain:
    """The share by which latency falls, below zero where it rises, with its 95 % interval."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """Holds the mean over the models, each at one of its measured input sizes, and the verdict that follows from it."""

    verdict: ClaimVerdict
    mean: Gain
    gains: tuple[Gain, ...]


def judge_gains(figure: float, pairs: pd.DataFrame, study: Study, what: str) -> tuple[ReasonedVerdict, GainClaim]:
    """Return whether latency falls by `figure`, as the mean over the study's models at its own work.

    The stated GPU decides where it was measured, or else every GPU that was. Also return what to look for among
    comparisons: the pairs that have a ratio; and the mean that decides.

    `pairs`: time ratios of a comparison; those at other batches do not decide. `what`: what is compared, in words.
    """
    own = pairs[find_stated_batches(pairs, study)]
    by_gpu = _collect_by_gpu(own)
    decisive = {gpu: _list_readings(figure, gains) for gpu, gains in _select_decisive(by_gpu, study).items()}
    claim = GainClaim(figure=figure, pairs=_list_pairs(pairs), mean=_describe_means(decisive))
    if not decisive:
        return ("not tested here", _explain_untested(own, by_gpu, study)), claim
    verdicts = [readings[0].verdict for readings in decisive.values()]
    verdict = next(verdict for verdict in reversed(KINDEST_FIRST) if verdict in verdicts)
    band = format_interval(*find_band(figure), PERCENT)
    reason = "; ".join(
        f"on {gpu}, {what} at the study's own work: {' or '.join(map(_describe_reading, readings))}; "
        f"the band is {band} %"
        for gpu, readings in decisive.items()
    )
    return (verdict, reason), claim


def _list_pairs(pairs: pd.DataFrame) -> frozenset[frozenset[tuple[str, str]]]:
    """Return the pairs that have a ratio, as `GainClaim` has them."""
    return frozenset(
        frozenset((str(row[f"cell_id_{side}"]), str(row[f"environment_id_{side}"])) for side in SIDES)
        for row in list_rows(pairs[pairs["ratio"].notna()])
    )


def _describe_means(decisive: Mapping[str, Sequence[_Reading]]) -> str:
    """Return `arithmetic mean 26.7 % higher (21.1 to 33.0, not widened for other ratios)`; empty where no mean decides.

    With the GPU where there are several. The interval is not one of those of a table, which hold together.
    """
    texts = []
    for gpu, (kindest, *_) in decisive.items():
        ends, where = format_interval(*_turn_ends(kindest.mean), PERCENT), f" on {gpu}" if len(decisive) > 1 else ""
        texts.append(f"{_say_gain(kindest.mean)} ({ends}, not widened for other ratios){where}")
    return "; ".join(texts)


def _collect_by_gpu(own: pd.DataFrame) -> dict[str, dict[str, list[Gain]]]:
    known = own[own["ratio_low"].notna()]
    return {str(gpu): _collect_gains(group) for gpu, group in known.groupby("gpu_name_subject", sort=True)}


def _select_decisive(by_gpu: Mapping[str, dict[str, list[Gain]]], study: Study) -> dict[str, dict[str, list[Gain]]]:
    """Return the GPUs on which all models of the study were measured, the stated one alone where it is among them."""
    complete = {gpu: gains for gpu, gains in by_gpu.items() if set(gains) == set(study.workloads)}
    stated = {gpu: gains for gpu, gains in complete.items() if study.gpu.is_named(gpu)}
    return stated or complete


def find_band(figure: float) -> Interval:
    """Return what counts as about `figure`."""
    return figure - GAIN_TOLERANCE, figure + GAIN_TOLERANCE


def judge_mean(figure: float, gains: Sequence[Gain]) -> ClaimVerdict:
    """Return where the mean's interval lies: inside the band, outside, or across an edge of it."""
    mean = compute_mean(gains)
    place = place_interval((mean.low, mean.high), find_band(figure))
    return {"inside": "reproduced", "outside": "not reproduced", "across": "not decided"}[place]  # type: ignore[return-value]


def compute_mean(gains: Sequence[Gain]) -> Gain:
    """Return the mean of independent gains; its interval is put together from theirs.

    The distances of the limits from the values add up in squares: G. Y. Zou, A. Donner, Construction of confidence
    limits about effect measures, Statistics in Medicine 27 (2008) 1693.
    """
    value = sum(gain.value for gain in gains) / len(gains)
    below = sqrt(sum((gain.value - gain.low) ** 2 for gain in gains)) / len(gains)
    above = sqrt(sum((gain.high - gain.value) ** 2 for gain in gains)) / len(gains)
    return Gain(name="arithmetic mean", value=value, low=value - below, high=value + above)


def describe_gain(gain: Gain) -> str:
    """Return `conv6 18.6 % lower`, with the interval where it is one."""
    low, high = _turn_ends(gain)
    return _say_gain(gain) + ("" if low == high else f" (95 % interval {format_interval(low, high, PERCENT)})")


def _turn_ends(gain: Gain) -> Interval:
    """Return the ends of an interval in the direction in which the gain is said: lower, or higher."""
    return (gain.low, gain.high) if gain.value >= 0 else (-gain.high, -gain.low)


def _say_gain(gain: Gain) -> str:
    size = format_number(abs(gain.value), PERCENT)
    return f"{gain.name} {size} % {'lower' if gain.value >= 0 else 'higher'}"


def describe_extremes(pairs: pd.DataFrame) -> str:
    """Return the cells in which latency falls most and least, at any batch; empty where fewer than two have intervals.

    `pairs`: time ratios of a comparison. A claim that one cell bears out can be wrong of another.
    """
    known = pairs[pairs["ratio_low"].notna()]
    if len(known) < 2:
        return ""
    named = sorted(zip(label_shared(known), list_rows(known), strict=True), key=lambda item: float(item[1]["ratio"]))
    best, worst = (f"{name}, {_say_longer(row)}" for name, row in (named[0], named[-1]))
    return f"Of {len(named)} cells measured here, the best for the claim: {best}; the worst: {worst}"


def _say_longer(pair: Row) -> str:
    """Return which side takes how much longer, as every comparison of the report says it."""
    ratio = read_estimate(pair, center="ratio")
    return describe_ratio(ratio, subject=pair["subject"], reference=pair["reference"])


def _collect_gains(pairs: pd.DataFrame) -> dict[str, list[Gain]]:
    """Return per model the gain at each of its input sizes; of several runs the widest limits count."""
    gains: dict[str, list[Gain]] = {}
    for (model, size), group in pairs.groupby(["model", "input_size"], sort=True):
        gain = Gain(
            name=f"{model} at {size} px",
            value=1 - float(group["ratio"].median()),
            low=1 - float(group["ratio_high"].max()),
            high=1 - float(group["ratio_low"].min()),
        )
        gains.setdefault(str(model), []).append(gain)
    return gains


def _list_readings(figure: float, gains: Mapping[str, Sequence[Gain]]) -> list[_Reading]:
    """Return each reading, the one that is kindest to the claim first."""
    readings = [
        _Reading(verdict=judge_mean(figure, chosen), mean=compute_mean(chosen), gains=chosen)
        for chosen in product(*gains.values())
    ]
    return sorted(readings, key=lambda reading: KINDEST_FIRST.index(reading.verdict))


def _describe_reading(reading: _Reading) -> str:
    """Return the mean with its interval, of gains whose own intervals stand with the pairs that they are of."""
    return f"{describe_gain(reading.mean)}, of {', '.join(map(_say_gain, reading.gains))}"


def _explain_untested(own: pd.DataFrame, by_gpu: Mapping[str, Mapping[str, Sequence[Gain]]], study: Study) -> str:
    wanted = f"the claim is a mean over {len(study.workloads)} models at the study's own batches and sizes"
    missing = explain_missing_intervals(own)
    if not by_gpu:
        return f"{wanted}, of which no pair was measured here{f': {missing}' if missing else ''}"
    return f"{wanted}; this run has {'; '.join(_list_measured(by_gpu))}"


def _list_measured(by_gpu: Mapping[str, Mapping[str, Sequence[Gain]]]) -> Iterator[str]:
    for gpu, gains in by_gpu.items():
        names = join_words(gain.name for found in gains.values() for gain in found)
        yield f"{len(gains)} of them on {gpu}: {names}"
