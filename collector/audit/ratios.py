"""Judge the study's claims of ratios: GPU over CPU, training over inference, one framework or mode over another.

The study's own configuration is TensorFlow's graph mode on synthetic data at the stated batch and a stated input size.
PyTorch eager, the study's other one, is named beside it; all else is listed only.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import inf, sqrt

import pandas as pd

from bench.schema import Device
from collector.audit.measurements import (
    VERDICTS,
    ClaimContext,
    ClaimResult,
    Decided,
    Finding,
    Interval,
    Place,
    ReasonedVerdict,
    decide,
    describe_nearest,
    describe_pairs,
    describe_phases,
    describe_speedups,
    explain_missing_intervals,
    find_stated_batches,
    find_stated_cpu,
    find_stated_sizes,
    list_intervals,
    list_missing_intervals,
    place_interval,
    select_speedups,
    shorten,
)
from collector.audit.rates import (
    TOLERANCE,
    Rate,
    describe_algorithm,
    explain_too_slow,
    is_too_slow,
)
from collector.audit.study import (
    Claim,
    ReadTime,
    Study,
    choose_harshest_time,
    choose_kindest_time,
    describe_bound,
    list_works,
    read_time,
)
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES
from collector.units import (
    GFLOP,
    GFLOPS,
    PERCENT,
    RATIO,
    format_interval,
    format_number,
    format_significant,
    join_words,
)

KINDEST_FIRST: tuple[Decided, ...] = ("reproduced", "not decided", "not reproduced")
"""Of several readings of a model's work the one that is kindest to the claim counts."""
DEVICES: tuple[Device, ...] = ("cpu", "gpu")


def _choose(worst: ReadTime, measured: ReasonedVerdict) -> ReasonedVerdict:
    """Return the verdict on a claim whose least plausible time is `worst`.

    What is impossible by arithmetic stays so; otherwise what was measured decides, and arithmetic only where that
    decides nothing.
    """
    plausibility = worst.rate.plausibility
    is_decided = measured[0] not in ("not decided", "not tested here")
    if plausibility != "impossible" and (is_decided or plausibility == "possible"):
        return measured
    return VERDICTS[worst.rate.algorithm], f"{worst.describe()}: {describe_algorithm(worst.rate)}"


def _compare_ratio(figure: float, decisive: pd.DataFrame, where: str) -> ReasonedVerdict:
    """Return whether the intervals of a reading's pairs lie within TOLERANCE of the figure; the kindest size counts."""
    band = (figure * (1 - TOLERANCE), figure * (1 + TOLERANCE))
    words = {"inside": "inside", "outside": "outside", "across": "too wide to decide, across an edge of"}
    found: dict[Decided, list[str]] = {}
    for size, group in decisive.groupby("input_size", sort=False):
        intervals = list_intervals(group)
        places = [place_interval(interval, band) for interval in intervals]
        sized = [
            f"{format_interval(*interval, RATIO)} times ({words[place]} the band)"
            for interval, place in zip(intervals, places, strict=True)
        ]
        found.setdefault(decide(places), []).append(f"at {size} px {', '.join(sized)}")
    verdict = next(verdict for verdict in KINDEST_FIRST if verdict in found)
    texts = "; ".join(text for own in found.values() for text in own)
    return verdict, (
        f"{where}, the 95 % interval of the ratio alone is {texts}; "
        f"the band {format_interval(*band, RATIO)} times, the figure within {TOLERANCE * 100:.0f} %"
    )


def evaluate_speedup(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate a claim of GPU over CPU in training or inference."""
    study, figure = context.study, float(claim.figure or 0)
    entries = (study.find_entry(str(claim.model), "tensorflow", device, claim.phase) for device in DEVICES)
    sides = list(zip(*(read_time(study, entry, context.counted) for entry in entries), strict=True))
    pairs = select_speedups(context.measurements, study, str(claim.model), claim.phase)
    # Of the reading that is kindest to both sides, the less plausible one: one network made both times.
    worst = choose_kindest_time([choose_harshest_time(pair) for pair in sides])
    verdict, reason = _choose(worst, _compare_speedup(figure, pairs, study))
    if nearest := "; ".join(shorten(describe_nearest(pairs))):
        reason += f". Measured at the stated work {nearest}"
        if verdict == "not tested here" and not pairs.loc[pairs["is_nearest"], "is_stated_hardware"].any():
            reason += "; this speaks neither for nor against the claim"
    low_peak = study.cpu.low_peak_flops_per_second
    findings = [
        Finding(
            name="too slow to be a baseline",
            scope=f"at {cpu.rate.work.label}",
            reason=f"{cpu.describe()}, and {explain_too_slow(cpu.rate, low_peak)}",
        )
        for cpu, _ in sides
        if is_too_slow(cpu.rate, low_peak)
    ]
    return ClaimResult(
        claim=claim,
        verdict=verdict,
        reason=reason,
        findings=tuple(findings),
        arithmetic=tuple(_calculate_speedup(claim, sides, study)),
        measured=(*describe_speedups(context.measurements, pairs), *list_missing_intervals(pairs)),
    )


def _compare_speedup(figure: float, pairs: pd.DataFrame, study: Study) -> ReasonedVerdict:
    own = pairs[pairs["is_own"]]
    same = own[own["is_stated_hardware"]]
    decisive = same[same["ratio_low"].notna()]
    nearest = pairs[pairs["is_nearest"]]
    if not decisive.empty:
        return _compare_ratio(figure, decisive, "on the stated hardware")
    if not same.empty:
        reason = f"measured on the stated hardware, but {explain_missing_intervals(same)}"
    elif own["ratio"].notna().any() or (own.empty and not nearest.empty and not nearest["is_stated_hardware"].any()):
        reason = f"the figure is of a {study.gpu.name} over a {study.cpu.name}; measured here is other hardware"
    elif not own.empty:
        reason = f"at the stated work, in TensorFlow's graph mode, {explain_missing_intervals(own)}"
    elif pairs["ratio"].notna().any():
        reason = (
            "measured here is other work than the study's: not its batch, its input size and synthetic data in "
            "TensorFlow's graph mode, GPU and CPU both"
        )
    else:
        reason = explain_missing_intervals(pairs) or "no cell of this work was measured on both a GPU and a CPU"
    return "not tested here", reason


Sides = tuple[ReadTime, ReadTime]
"""A time on the CPU and one on the GPU, under one reading."""


def _calculate_speedup(claim: Claim, sides: Sequence[Sides], study: Study) -> Iterator[str]:
    low_peak, figure = study.cpu.low_peak_flops_per_second, float(claim.figure or 0)
    yield from (side.describe() for pair in sides for side in pair)
    labels = [
        cpu.rate.work.label
        for cpu, gpu in sides
        if cpu.rate.plausibility == gpu.rate.plausibility == "possible"
        and not is_too_slow(_keep_possible(cpu.rate, gpu.rate), low_peak)
    ]
    yield (
        f"one network has to explain both times, by direct convolutions on the GPU and fast enough for a baseline on "
        f"the CPU: {len(labels)} of {len(sides)} readings {'does' if len(labels) == 1 else 'do'}"
        + (f" ({', '.join(labels)})" if labels else "")
    )
    yield describe_bound(study.cpu)
    yield from _compare_peaks(figure, sides[0], study)
    ratios = []
    for framework in FRAMEWORK_NAMES:
        times = {
            entry.device: entry.seconds
            for entry in study.table
            if (entry.model, entry.framework, entry.phase) == (claim.model, framework, claim.phase)
        }
        if len(times) == len(DEVICES):
            ratios.append(f"{format_significant(times['cpu'] / times['gpu'])}x in {FRAMEWORK_NAMES[framework]}")
    yield f"{study.table_name} gives {' and '.join(ratios)}"
    yield from filter(None, [study.workloads[str(claim.model)].remark])


def _keep_possible(cpu: Rate, gpu: Rate) -> Rate:
    """Return the rate of the CPU with no more FLOPs than the GPU can have done."""
    if cpu.work.most_flops is None:
        return cpu
    most = min(cpu.work.most_flops, gpu.limit.flops_per_second * gpu.seconds)
    return replace(cpu, work=replace(cpu.work, most_flops=most))


def _compare_peaks(figure: float, sides: Sides, study: Study) -> Iterator[str]:
    peak, cpu = study.gpu.high_peak_flops_per_second, study.cpu
    low, high = peak / cpu.high_peak_flops_per_second, peak / cpu.low_peak_flops_per_second
    span = f"the stated devices' likely peaks are {format_significant(low)} to {format_significant(high)} times apart"
    if figure - 0.5 <= high:  # figures are stated as whole numbers
        yield span
        return
    behind = f"{format_significant(figure / high)} to {format_significant(figure / low)}"
    slow, gpu = (side.entry.seconds for side in sides)
    yield f"{span}: {figure:g}x needs a CPU that stays {behind} times further below its peak than the GPU"
    yield (
        f"whatever was computed: a {study.gpu.name} at its peak does {format_number(peak * gpu, GFLOP)} GFLOP in its "
        f"time by direct convolutions, which the CPU then did at {format_number(peak * gpu / slow, GFLOPS)} GFLOP/s or "
        "less"
    )


# As the abstract sorts them: light, mid-sized, complex.
CLASSES = (("conv6",), ("vgg16", "resnet18"), ("cyclegan",))


def evaluate_lightness(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Check whether heavier models gain more from the GPU in training, in the order that the study states.

    Only pairs on the stated hardware, at the study's own work, decide.
    """
    study = context.study
    pairs = {model: select_speedups(context.measurements, study, model, "train") for model in study.workloads}
    verdict, reason = _compare_classes(pairs, study)
    gains = ", ".join(f"{model} {format_significant(_find_gain(study, model))}x" for model in study.workloads)
    return ClaimResult(
        claim=claim,
        verdict=verdict,
        reason=reason,
        findings=tuple(_find_disagreements(context)),
        arithmetic=(f"{study.table_name} gives {gains}; CycleGAN's are at batch 1, the others' at 64",),
        measured=shorten([f"{model}: {line}" for model, found in pairs.items() for line in describe_nearest(found)]),
    )


def _compare_classes(pairs: Mapping[str, pd.DataFrame], study: Study) -> ReasonedVerdict:
    intervals: dict[str, list[Interval]] = {}
    for model, found in pairs.items():
        is_own = found["is_own"] & found["is_stated_hardware"] & found["ratio_low"].notna()
        intervals[model] = list_intervals(found[is_own])
    if missing := [model for model, found in intervals.items() if not found]:
        return "not tested here", (
            f"the order is of a {study.gpu.name} over a {study.cpu.name}, in TensorFlow's graph mode at the study's "
            f"own work; not measured there: {', '.join(missing)}"
        )
    words = {"inside": "gains more than", "outside": "gains less than", "across": "is not shown to gain more than"}
    places: dict[tuple[str, str], Place] = {}
    for lighter, heavier in zip(CLASSES[:-1], CLASSES[1:], strict=True):
        for light, heavy in product(lighter, heavier):
            # How far it is ahead, in the worst and in the best case; the kindest of the readings counts.
            leads = product(intervals[light], intervals[heavy])
            own = {place_interval((low - above, high - below), (0, inf)) for (low, high), (below, above) in leads}
            places[light, heavy] = next(place for place in ("inside", "across", "outside") if place in own)
    texts = ", ".join(f"{light} {words[place]} {heavy}" for (light, heavy), place in places.items())
    return decide(places.values()), f"on the stated hardware {texts}"


def _find_disagreements(context: ClaimContext) -> Iterator[Finding]:
    study, spans = context.study, {}
    for model, workload in study.workloads.items():
        works = list_works(study, model, "infer", context.counted)
        least, most = min(work.flops for work in works), max(work.most_flops or work.flops for work in works)
        spans[model] = (least / workload.batch_size, most / workload.batch_size)
    gains = {model: _find_gain(study, model) for model in study.workloads}
    for first, second in combinations(study.workloads, 2):
        light, heavy = sorted((first, second), key=lambda model: spans[model])
        if spans[light][1] < spans[heavy][0] and gains[heavy] > gains[light]:
            works_of = [format_number(spans[heavy][0], GFLOP), format_number(spans[light][1], GFLOP)]
            found = [f"{format_significant(gains[model])}x" for model in (heavy, light)]
            yield Finding(
                name="its own table disagrees",
                reason=f"{heavy} computes more than {light} under every reading, {' against '.join(works_of)} GFLOP a "
                f"sample, and gains more, {' against '.join(found)}",
            )


def _find_gain(study: Study, model: str) -> float:
    cpu, gpu = (study.find_entry(model, "tensorflow", device, "train").seconds for device in DEVICES)
    return cpu / gpu


def evaluate_phases(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate a claim of training over inference: by its two times, then by TensorFlow's graph mode on that CPU."""
    study, model = context.study, str(claim.model)
    pairs = context.measurements.phases
    pairs = pairs[(pairs["model"] == model) & (pairs["device"] == "cpu")]
    train, infer = (
        read_time(study, study.find_entry(model, "tensorflow", "cpu", phase), context.counted)
        for phase in ("train", "infer")
    )
    own = pairs[find_stated_batches(pairs, study) & find_stated_sizes(pairs, study)]
    own = own[(own["framework"] == "tensorflow") & (own["mode"] == "graph")]
    same = own[find_stated_cpu(own, study, "subject")]
    decisive = same[same["ratio_low"].notna()]
    elsewhere = "measured here is another CPU" if own["ratio"].notna().any() else "it was not measured"
    measured: ReasonedVerdict = (
        "not tested here",
        f"the figure is of a {study.cpu.name}; {explain_missing_intervals(same) or elsewhere}",
    )
    if not decisive.empty:
        measured = _compare_ratio(float(claim.figure or 0), decisive, f"on a {study.cpu.name}")
    worst = choose_kindest_time([choose_harshest_time(sides) for sides in zip(train, infer, strict=True)])
    verdict, reason = _choose(worst, measured)
    return ClaimResult(
        claim=claim,
        verdict=verdict,
        reason=reason,
        arithmetic=(
            *_list_ratios(context),
            *(time.describe() for time in (*train, *infer)),
            describe_bound(study.cpu),
        ),
        measured=(*describe_phases(pairs), *list_missing_intervals(pairs)),
    )


def _list_ratios(context: ClaimContext) -> Iterator[str]:
    study = context.study
    entries = {(entry.model, entry.framework, entry.device, entry.phase): entry for entry in study.table}
    for train in study.table:
        infer = entries.get((train.model, train.framework, train.device, "infer"))
        if train.phase == "train" and infer is not None:
            above, below = (read_time(study, entry, context.counted) for entry in (train, infer))
            works = [
                format_significant(one.rate.work.flops / other.rate.work.flops)
                for one, other in zip(above, below, strict=True)
            ]
            yield (
                f"{train.model}, {FRAMEWORK_NAMES[train.framework]} on the {DEVICE_NAMES[train.device]}: "
                f"{format_significant(train.seconds / infer.seconds)} to 1 in time, "
                f"{' or '.join(dict.fromkeys(works))} to 1 in operations"
            )


# "About 15 %": from 10 to 20 %.
GAIN_TOLERANCE = 0.05


@dataclass(frozen=True, kw_only=True)
class _Gain:
    """The share by which latency falls, below zero where it rises, with its 95 % interval."""

    name: str
    value: float
    low: float
    high: float

    def describe(self) -> str:
        """Return `conv6 18.6 % lower`."""
        size = format_number(abs(self.value), PERCENT)
        return f"{self.name} {size} % {'lower' if self.value >= 0 else 'higher'}"


def evaluate_gain(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate a claim that latency falls by about the figure: by TensorFlow instead of PyTorch, or by fusion.

    It is judged by the mean over the study's models at its own work: the study states one figure for four models, of
    which its own table has 18.6, 6.4, 9.8 and 6.1 %: one alone lies within 10 to 20 %, and their mean is 10.3 %. A rule
    that asked it of each model would call the study itself not reproduced. Other batches and modes are listed only.
    """
    study, graph = context.study, "Keras on TensorFlow in graph mode"
    pairs, arithmetic = context.measurements.fusion, claim.facts
    modes, others = ("graph", "unfused"), [("fused-norm", "graph"), ("compiled", "graph")]
    what = f"{graph} with fusion over the same without"
    if claim.kind == "latency":
        pairs, arithmetic = context.measurements.latencies, (_describe_table_gains(study), *claim.facts)
        modes, others = ("graph", "eager"), [("unfused", "eager"), ("fused-norm", "eager"), ("compiled", "compiled")]
        what = f"{graph} over PyTorch eager"

    def select(subject: str, reference: str) -> pd.DataFrame:
        return pairs[(pairs["mode_subject"] == subject) & (pairs["mode_reference"] == reference)]

    own = select(*modes)
    is_stated = find_stated_batches(own, study)
    verdict, reason = _judge_gains(float(claim.figure or 0), own[is_stated], study, what)
    return ClaimResult(
        claim=claim,
        verdict=verdict,
        reason=reason,
        arithmetic=arithmetic,
        measured=(
            *describe_pairs(pd.concat([own[is_stated], own[~is_stated]]), "as long as"),
            *describe_pairs(pd.concat([select(*one) for one in others]), "as long as"),
            *list_missing_intervals(own),
        ),
    )


def _describe_table_gains(study: Study) -> str:
    gains = []
    for model in study.workloads:
        times = (study.find_entry(model, name, "gpu", "infer").seconds for name in ("tensorflow", "pytorch"))
        gain = 1 - next(times) / next(times)
        gains.append(_Gain(name=model, value=gain, low=gain, high=gain))
    listed = ", ".join(gain.describe() for gain in gains)
    return f"{study.table_name} says {listed}; {_average_gains(gains).describe()}"


def _judge_gains(figure: float, own: pd.DataFrame, study: Study, what: str) -> ReasonedVerdict:
    """Return the verdict on the mean; the stated GPU decides where it was measured, or else every GPU that was.

    `own`: time ratios at the study's work. `what`: what is compared, in words.
    """
    known = own[own["ratio_low"].notna()]
    by_gpu = {str(gpu): _collect_gains(group) for gpu, group in known.groupby("gpu_name_subject", sort=True)}
    complete = {gpu: gains for gpu, gains in by_gpu.items() if set(gains) == set(study.workloads)}
    decisive = {gpu: gains for gpu, gains in complete.items() if study.gpu.is_named(gpu)} or complete
    if not decisive:
        wanted = f"the claim is a mean over {len(study.workloads)} models at the study's own batches and sizes"
        measured = [
            f"{len(gains)} of them on {gpu}: {join_words(gain.name for found in gains.values() for gain in found)}"
            for gpu, gains in by_gpu.items()
        ]
        missing = explain_missing_intervals(own)
        none = f"of which no pair was measured here{f': {missing}' if missing else ''}"
        return "not tested here", f"{wanted}; this run has {'; '.join(measured)}" if by_gpu else f"{wanted}, {none}"
    band = (figure - GAIN_TOLERANCE, figure + GAIN_TOLERANCE)
    verdicts, texts = set(), []
    for gpu, gains in decisive.items():
        readings = []
        for chosen in product(*gains.values()):
            mean = _average_gains(chosen)
            low, high = (mean.low, mean.high) if mean.value >= 0 else (-mean.high, -mean.low)
            text = f"{mean.describe()} (95 % interval {format_interval(low, high, PERCENT)})"
            listed = ", ".join(gain.describe() for gain in chosen)
            readings.append((decide([place_interval((mean.low, mean.high), band)]), f"{text}, of {listed}"))
        readings.sort(key=lambda reading: KINDEST_FIRST.index(reading[0]))
        verdicts.add(readings[0][0])
        texts.append(f"on {gpu}, {what} at the study's own work: {' or '.join(text for _, text in readings)}")
    verdict = next(verdict for verdict in reversed(KINDEST_FIRST) if verdict in verdicts)
    return verdict, f"{'; '.join(texts)}; the band is {format_interval(*band, PERCENT)} %"


def _collect_gains(pairs: pd.DataFrame) -> dict[str, list[_Gain]]:
    gains: dict[str, list[_Gain]] = {}
    for (model, size), group in pairs.groupby(["model", "input_size"], sort=True):
        gain = _Gain(
            name=f"{model} at {size} px",
            value=1 - float(group["ratio"].median()),
            low=1 - float(group["ratio_high"].max()),
            high=1 - float(group["ratio_low"].min()),
        )
        gains.setdefault(str(model), []).append(gain)
    return gains


def _average_gains(gains: Sequence[_Gain]) -> _Gain:
    """Return the mean of independent gains; its interval is put together from theirs.

    The distances of the limits from the values add up in squares: G. Y. Zou, A. Donner, Construction of confidence
    limits about effect measures, Statistics in Medicine 27 (2008) 1693.
    """
    value = sum(gain.value for gain in gains) / len(gains)
    below = sqrt(sum((gain.value - gain.low) ** 2 for gain in gains)) / len(gains)
    above = sqrt(sum((gain.high - gain.value) ** 2 for gain in gains)) / len(gains)
    return _Gain(name="arithmetic mean", value=value, low=value - below, high=value + above)
