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


def judge_gains(figure: float, pairs: pd.DataFrame, study: Study, what: str) -> ReasonedVerdict:
    """Return whether latency falls by `figure`, as the mean over the study's models at its own work.

    The stated GPU decides where it was measured, or else every GPU that was.

    `pairs`: time ratios of a comparison; those at other batches are left out. `what`: what is compared, in words.
    """
    own = pairs[find_stated_batches(pairs, study)]
    by_gpu = _collect_by_gpu(own)
    decisive = _select_decisive(by_gpu, study)
    if not decisive:
        return "not tested here", _explain_untested(own, by_gpu, study)
    judged = {gpu: _judge_readings(figure, gains) for gpu, gains in decisive.items()}
    verdicts = [verdict for verdict, _ in judged.values()]
    verdict = next(verdict for verdict in reversed(KINDEST_FIRST) if verdict in verdicts)
    band = format_interval(*find_band(figure), PERCENT)
    return verdict, "; ".join(
        f"on {gpu}, {what} at the study's own work: {text}; the band is {band} %" for gpu, (_, text) in judged.items()
    )


def describe_means(figure: float, pairs: pd.DataFrame, study: Study) -> str:
    """Return `mean 26.7 % higher (21.1 to 33.0, this mean alone)`, which decides a claim; empty where none does.

    With the GPU where there are several. The interval is not one of those of a table, which hold together.
    """
    decisive = _select_decisive(_collect_by_gpu(pairs[find_stated_batches(pairs, study)]), study)
    texts = []
    for gpu, gains in decisive.items():
        found = [(judge_mean(figure, chosen), compute_mean(chosen)) for chosen in product(*gains.values())]
        _, mean = min(found, key=lambda judged: KINDEST_FIRST.index(judged[0]))
        low, high = _turn_ends(mean)
        ends = format_interval(low, high, PERCENT)
        texts.append(f"{_say_gain(mean)} ({ends}, this mean alone){f' on {gpu}' if len(decisive) > 1 else ''}")
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
    return Gain(name="mean", value=value, low=value - below, high=value + above)


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


def find_gain_claim(figure: float, pairs: pd.DataFrame, study: Study) -> GainClaim:
    """Return what to look for among comparisons: the pairs that have a ratio; and the mean that decides."""
    keys = [
        frozenset((str(row[f"cell_id_{side}"]), str(row[f"environment_id_{side}"])) for side in SIDES)
        for row in list_rows(pairs[pairs["ratio"].notna()])
    ]
    return GainClaim(figure=figure, pairs=frozenset(keys), mean=describe_means(figure, pairs, study))


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


def _judge_readings(figure: float, gains: Mapping[str, Sequence[Gain]]) -> ReasonedVerdict:
    """Return the verdict under the reading that is kindest to the claim, and all of them in words."""
    found = [(judge_mean(figure, chosen), _describe_mean(chosen)) for chosen in product(*gains.values())]
    found.sort(key=lambda judged: KINDEST_FIRST.index(judged[0]))
    return found[0][0], " or ".join(text for _, text in found)


def _describe_mean(gains: Sequence[Gain]) -> str:
    """Return the mean with its interval, of gains whose own intervals stand with the pairs that they are of."""
    return f"{describe_gain(compute_mean(gains))}, of {', '.join(map(_say_gain, gains))}"


def _explain_untested(own: pd.DataFrame, by_gpu: Mapping[str, Mapping[str, Sequence[Gain]]], study: Study) -> str:
    wanted = f"the claim is a mean over {len(study.workloads)} models at the study's own batches and sizes"
    missing = explain_missing_intervals(own)
    if not by_gpu:
        return f"{wanted}, of which none was measured here{f': {missing}' if missing else ''}"
    return f"{wanted}, and this run has {'; '.join(_list_measured(by_gpu))}"


def _list_measured(by_gpu: Mapping[str, Mapping[str, Sequence[Gain]]]) -> Iterator[str]:
    for gpu, gains in by_gpu.items():
        names = join_words(gain.name for found in gains.values() for gain in found)
        yield f"{len(gains)} of them on {gpu}: {names}"
