"""Judge the study's claims by arithmetic, then by what runs measured.

Three verdicts are measured, on the stated hardware where the claim is about hardware, on any GPU where it is about a
framework: `reproduced`, `not reproduced`, `not decided`. Three are arithmetic on a time that the claim rests on, under
every reading of its work: `implausible without Winograd`, `implausible on the stated hardware`, `impossible on the
stated hardware` (see rates.py). `peak rates only`: the figure is a ratio of data sheets. `not tested here`: all
else. Findings stand beside a verdict and decide nothing.

The study's own configuration is TensorFlow's graph mode on synthetic data at the stated batch and a stated input size;
all else is listed only.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import inf, sqrt
from typing import NamedTuple

import pandas as pd

from bench.schema import Phase
from collector.audit.measured import (
    ClaimContext,
    Decided,
    Place,
    decide,
    explain_missing_intervals,
    list_energies,
    list_intervals,
    list_measured,
    place_interval,
)
from collector.audit.rates import (
    TOLERANCE,
    Algorithm,
    Rate,
    describe_algorithm,
    explain_too_slow,
    is_too_slow,
)
from collector.audit.rows import describe_calculation, list_rates
from collector.audit.study import Claim, ClaimKind, ClaimVerdict, Finding, Study
from collector.audit.table import AuditedDevice, TableRow, find_device
from collector.labels import FRAMEWORK_NAMES
from collector.units import (
    GFLOP,
    PERCENT,
    RATIO,
    choose_rate_unit,
    format_interval,
    format_number,
    format_significant,
)

ReasonedVerdict = tuple[ClaimVerdict, str]
KINDEST_FIRST: tuple[Decided, ...] = ("reproduced", "not decided", "not reproduced")
"""Of several readings of a model's work the one that is kindest to the claim counts."""
VERDICTS: Mapping[Algorithm | None, ClaimVerdict] = {
    "direct convolutions": "not tested here",
    "F(2x2, 3x3)": "implausible without Winograd",
    "F(4x4, 3x3)": "implausible on the stated hardware",
    None: "impossible on the stated hardware",
}
"""The verdict on a claim that rests on a time, by the plainest algorithm that reaches it."""


@dataclass(frozen=True, kw_only=True)
class ClaimResult:
    """A claim with what arithmetic and runs say about it."""

    claim: Claim
    verdict: ClaimVerdict
    reason: str
    """What the verdict rests on, without a full stop."""
    findings: tuple[Finding, ...] = ()
    arithmetic: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()


class Time(NamedTuple):
    """A time of the study's table under one reading of its work."""

    who: str
    row: TableRow
    device: AuditedDevice
    rate: Rate

    def describe(self) -> str:
        return f"{self.who}: {describe_calculation(self.row, self.rate, self.device)}"

    @property
    def severity(self) -> tuple[bool, float]:
        return self.rate.severity


def _read_times(study: Study, row: TableRow | None) -> list[Time]:
    """Return the time of a row under each reading of its work; none where the table has no such row."""
    if row is None:
        return []
    who, device = (
        f"{FRAMEWORK_NAMES[str(row.framework)]} {row.phase} on the {study.name_device(row)}",
        find_device(study, row),
    )
    return [Time(who, row, device, rate) for rate in list_rates(row, device)]


# Ratios of two times: GPU over CPU, training over inference


def _judge_ratio(
    claim: Claim, sides: Sequence[tuple[Time, Time]], pairs: pd.DataFrame, hardware: str
) -> ReasonedVerdict:
    """Return the verdict on a ratio of two times, `sides` under each reading; `pairs`: of `ClaimContext.select`.

    What is impossible by arithmetic stays so; otherwise what was measured decides, and arithmetic only where that
    decides nothing. The reading that is kindest to both times counts, by the less plausible one: one network made both.
    """
    own = pairs[pairs["is_own"]]
    same = own[own["is_stated_hardware"]]
    verdict: ClaimVerdict = "not tested here"
    if same["ratio_low"].notna().any():
        verdict, reason = _place_ratio(claim.figure, same[same["ratio_low"].notna()])
    elif not same.empty:
        reason = f"measured on the stated hardware, but {explain_missing_intervals(same)}"
    elif own["ratio"].notna().any():
        reason = f"the figure is of a {hardware}; measured here is other hardware"
    elif not own.empty:
        reason = f"at the stated work, in TensorFlow's graph mode, {explain_missing_intervals(own)}"
    elif pairs["ratio"].notna().any():
        reason = (
            "measured here is other work than the study's: not its batch, its input size and synthetic data in "
            "TensorFlow's graph mode, on both sides"
        )
    else:
        reason = explain_missing_intervals(pairs) or "no cell of this work was measured on both sides"
    worst = min((max(pair, key=lambda time: time.severity) for pair in sides), key=lambda time: time.severity)
    is_decided = verdict in ("reproduced", "not reproduced")
    if worst.rate.plausibility == "impossible" or (worst.rate.plausibility == "implausible" and not is_decided):
        return VERDICTS[worst.rate.algorithm], f"{worst.describe()}: {describe_algorithm(worst.rate)}"
    return verdict, reason


def _place_ratio(figure: float, decisive: pd.DataFrame) -> tuple[Decided, str]:
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
    texts = "; ".join(text for own in found.values() for text in own)
    return next(verdict for verdict in KINDEST_FIRST if verdict in found), (
        f"on the stated hardware, the 95 % interval of the ratio alone is {texts}; "
        f"the band {format_interval(*band, RATIO)} times, the figure within {TOLERANCE * 100:.0f} %"
    )


def evaluate_speedup(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate a claim of GPU over CPU in training or inference."""
    study = context.study
    rows = (study.find_row(claim.model, "tensorflow", device, claim.phase) for device in (study.cpu, study.gpu))
    sides = list(zip(*(_read_times(study, row) for row in rows), strict=True))
    pairs = context.select("speedups", claim.model, claim.phase)
    verdict, reason = _judge_ratio(claim, sides, pairs, f"{study.gpu} over a {study.cpu}")
    lowest_peak = study.lowest_cpu_gflops * 1e9
    findings = [
        Finding(
            name="too slow to be a baseline",
            scope=f"at {cpu.rate.work.label}",
            reason=f"{cpu.describe()}, and {explain_too_slow(cpu.rate, lowest_peak)}",
        )
        for cpu, _ in sides
        if is_too_slow(cpu.rate, lowest_peak)
    ]
    return ClaimResult(
        claim=claim,
        verdict=verdict,
        reason=reason,
        findings=tuple(findings),
        arithmetic=tuple(_calculate_speedup(claim, sides, study)),
        measured=list_measured(pairs),
    )


def _calculate_speedup(claim: Claim, sides: Sequence[tuple[Time, Time]], study: Study) -> Iterator[str]:
    yield from (side.describe() for pair in sides for side in pair)
    labels = [
        cpu.rate.work.label
        for cpu, gpu in sides
        if cpu.rate.plausibility == gpu.rate.plausibility == "possible"
        and not is_too_slow(_keep_possible(cpu.rate, gpu.rate), study.lowest_cpu_gflops * 1e9)
    ]
    yield (
        f"one network has to explain both times, by direct convolutions on the GPU and fast enough for a baseline on "
        f"the CPU: {len(labels)} of {len(sides)} readings {'does' if len(labels) == 1 else 'do'}"
        + (f" ({', '.join(labels)})" if labels else "")
    )
    yield _describe_bound(study)
    yield _compare_peaks(claim.figure, study)
    gains = {name: _find_gain(study, claim.model, claim.phase, name) for name in FRAMEWORK_NAMES}
    ratios = [f"{format_significant(gain)}x in {FRAMEWORK_NAMES[name]}" for name, gain in gains.items() if gain]
    yield f"{study.provenance} gives {' and '.join(ratios)}"
    yield from filter(None, [study.remarks.get(claim.model)])


def _keep_possible(cpu: Rate, gpu: Rate) -> Rate:
    """Return the rate of the CPU with no more FLOPs than the GPU can have done."""
    if cpu.work.most_flops is None:
        return cpu
    most = min(cpu.work.most_flops, gpu.limit.flops_per_second * gpu.seconds)
    return replace(cpu, work=replace(cpu.work, most_flops=most))


def _describe_bound(study: Study) -> str:
    """Say where the limit of the CPU's speed is from, and between what its peak probably lies."""
    cpu = study.find_device("cpu")
    bound = cpu.bound_flops_per_second or 0.0
    unit = choose_rate_unit([bound])
    likely = format_interval(study.lowest_cpu_gflops * 1e9, cpu.peak_flops_per_second, unit)
    limit = f"the FP32 bound of a {cpu.name}, {format_number(bound, unit)} {unit.label}, is taken from: {cpu.source}"
    return f"{limit}; its likely peak is {likely} {unit.label}"


def _compare_peaks(figure: float, study: Study) -> str:
    """Return how far apart the devices' peaks are, and what a larger figure needs."""
    gpu, cpu = (study.find_device(device).peak_flops_per_second or 0.0 for device in ("gpu", "cpu"))
    low, high = gpu / cpu, gpu / (study.lowest_cpu_gflops * 1e9)
    span = f"the stated devices' likely peaks are {format_significant(low)} to {format_significant(high)} times apart"
    if figure - 0.5 <= high:  # figures are stated as whole numbers
        return span
    behind = f"{format_significant(figure / high)} to {format_significant(figure / low)}"
    return f"{span}: {figure:g}x needs a CPU that stays {behind} times further below its peak than the GPU"


def _find_gain(study: Study, model: str, phase: Phase = "train", framework: str = "tensorflow") -> float | None:
    """Return the table's time on the CPU over that on the GPU; None where it lacks one."""
    cpu, gpu = (study.find_row(model, framework, device, phase) for device in (study.cpu, study.gpu))
    return None if cpu is None or gpu is None else _divide_times(cpu, gpu)


def _divide_times(row: TableRow, other: TableRow) -> float:
    """Return how many times as long as the other a row takes, both of one batch."""
    return other.samples_per_second_stated / row.samples_per_second_stated


def evaluate_phases(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate a claim of training over inference: by its two times, then by TensorFlow's graph mode on that CPU."""
    study = context.study
    rows = (study.find_row(claim.model, "tensorflow", study.cpu, phase) for phase in ("train", "infer"))
    train, infer = (_read_times(study, row) for row in rows)
    pairs = context.select("phases", claim.model)
    verdict, reason = _judge_ratio(claim, list(zip(train, infer, strict=True)), pairs, study.cpu)
    times = [time.describe() for time in (*train, *infer)]
    return ClaimResult(
        claim=claim,
        verdict=verdict,
        reason=reason,
        arithmetic=(*_list_ratios(study), *times, _describe_bound(study)),
        measured=list_measured(pairs.assign(phase="train over infer")),
    )


def _list_ratios(study: Study) -> Iterator[str]:
    for train in study.rows:
        infer = study.find_row(train.model, train.framework, train.device, "infer")
        if train.phase == "train" and infer is not None:
            pairs = zip(*(list_rates(row, find_device(study, row)) for row in (train, infer)), strict=True)
            works = dict.fromkeys(format_significant(one.work.flops / other.work.flops) for one, other in pairs)
            name = FRAMEWORK_NAMES[str(train.framework)]
            yield (
                f"{train.model}, {name} on the {study.name_device(train)}: "
                f"{format_significant(_divide_times(train, infer))} to 1 in time, "
                f"{' or '.join(works)} to 1 in operations"
            )


# The order of the models

# As the abstract sorts them: light, mid-sized, complex.
CLASSES = (("conv6",), ("vgg16", "resnet18"), ("cyclegan",))


def evaluate_lightness(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Check whether heavier models gain more from the GPU in training, in the order that the study states.

    Only pairs on the stated hardware, at the study's own work, decide.
    """
    study = context.study
    pairs = {model: context.select("speedups", model, "train") for model in study.models}
    verdict, reason = _compare_classes(pairs, study)
    gains = ", ".join(f"{model} {format_significant(_find_gain(study, model) or 0.0)}x" for model in study.models)
    return ClaimResult(
        claim=claim,
        verdict=verdict,
        reason=reason,
        findings=tuple(_find_disagreements(study)),
        arithmetic=(f"{study.provenance} gives {gains}; CycleGAN's are at batch 1, the others' at 64",),
        measured=list_measured(pd.concat([found[found["is_own"]] for found in pairs.values()])),
    )


def _compare_classes(pairs: Mapping[str, pd.DataFrame], study: Study) -> ReasonedVerdict:
    intervals: dict[str, list[tuple[float, float]]] = {}
    for model, found in pairs.items():
        is_own = found["is_own"] & found["is_stated_hardware"] & found["ratio_low"].notna()
        intervals[model] = list_intervals(found[is_own])
    if missing := [model for model, found in intervals.items() if not found]:
        return "not tested here", (
            f"the order is of a {study.gpu} over a {study.cpu}, in TensorFlow's graph mode at the study's own work; "
            f"not measured there: {', '.join(missing)}"
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


def _find_disagreements(study: Study) -> Iterator[Finding]:
    spans = {}
    for model in study.models:
        works = [one for row in study.rows if (row.model, row.phase) == (model, "infer") for one in row.list_readings()]
        flops = [one.flops_per_sample or 0.0 for one in works]
        spans[model] = min(flops), max(*flops, *(one.most_flops_per_sample or 0.0 for one in works))
    gains = {model: _find_gain(study, model) or 0.0 for model in study.models}
    for first, second in combinations(study.models, 2):
        light, heavy = sorted((first, second), key=lambda model: spans[model])
        if spans[light][1] < spans[heavy][0] and gains[heavy] > gains[light]:
            works_of = [format_number(spans[heavy][0], GFLOP), format_number(spans[light][1], GFLOP)]
            found = [f"{format_significant(gains[model])}x" for model in (heavy, light)]
            yield Finding(
                name="its own table disagrees",
                reason=f"{heavy} computes more than {light} under every reading, {' against '.join(works_of)} GFLOP a "
                f"sample, and gains more, {' against '.join(found)}",
            )


# Latency, by frameworks and by fusion
# "About 15 %": from 10 to 20 %.
GAIN_TOLERANCE = 0.05


class _Gain(NamedTuple):
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
    that asked it of each model would call the study itself not reproduced. Other modes are listed only.
    """
    study, graph = context.study, "Keras on TensorFlow in graph mode"
    if claim.kind == "latency":
        pairs, modes, what = context.pairs["latencies"], ("graph", "eager"), f"{graph} over PyTorch eager"
        arithmetic = (_describe_table_gains(study), *claim.facts)
    else:
        pairs, modes, what = context.pairs["fusion"], ("graph", "unfused"), f"{graph} with fusion over the same without"
        arithmetic = claim.facts
    pairs = pairs[context.find_stated_batches(pairs)]
    is_own = (pairs["mode_subject"] == modes[0]) & (pairs["mode_reference"] == modes[1])
    verdict, reason = _judge_gains(claim.figure, pairs[is_own], study, what)
    measured = list_measured(pd.concat([pairs[is_own], pairs[~is_own]]))
    return ClaimResult(claim=claim, verdict=verdict, reason=reason, arithmetic=arithmetic, measured=measured)


def _describe_table_gains(study: Study) -> str:
    gains = []
    for model in study.models:
        own, other = (study.find_row(model, name, study.gpu, "infer") for name in ("tensorflow", "pytorch"))
        gain = 1 - _divide_times(own, other) if own and other else 0.0
        gains.append(_Gain(model, gain, gain, gain))
    listed = ", ".join(gain.describe() for gain in gains)
    return f"{study.provenance} says {listed}; {_average_gains(gains).describe()}"


def _judge_gains(figure: float, own: pd.DataFrame, study: Study, what: str) -> ReasonedVerdict:
    """Return the verdict on the mean; the stated GPU decides where it was measured, or else every GPU that was.

    `own`: time ratios at the study's work. `what`: what is compared, in words.
    """
    known = own[own["ratio_low"].notna()]
    by_gpu = {str(gpu): _collect_gains(group) for gpu, group in known.groupby("gpu_name_subject", sort=True)}
    complete = {gpu: gains for gpu, gains in by_gpu.items() if set(gains) == set(study.models)}
    decisive = {gpu: gains for gpu, gains in complete.items() if study.find_device("gpu").is_named(gpu)} or complete
    if not decisive:
        measured = "; ".join(f"{', '.join(gains)} on {gpu}" for gpu, gains in by_gpu.items())
        missing = explain_missing_intervals(own)
        return "not tested here", (
            f"the claim is a mean over {len(study.models)} models at the study's own batches and sizes, of which these "
            f"runs have {measured or 'none'}{f': {missing}' if missing else ''}"
        )
    band = (figure - GAIN_TOLERANCE, figure + GAIN_TOLERANCE)
    readings = []
    for gpu, gains in decisive.items():
        decided, mean, chosen = min(
            (
                (decide([place_interval((mean.low, mean.high), band)]), mean, chosen)
                for chosen, mean in _list_means(gains)
            ),
            key=lambda reading: KINDEST_FIRST.index(reading[0]),
        )
        low, high = (mean.low, mean.high) if mean.value >= 0 else (-mean.high, -mean.low)
        interval = f"(95 % interval {format_interval(low, high, PERCENT)})"
        listed = ", ".join(gain.describe() for gain in chosen)
        readings.append(
            (decided, f"on {gpu}, {what} at the study's own work: {mean.describe()} {interval}, of {listed}")
        )
    verdict = max((decided for decided, _ in readings), key=KINDEST_FIRST.index)
    return verdict, f"{'; '.join(text for _, text in readings)}; the band is {format_interval(*band, PERCENT)} %"


def _list_means(gains: Mapping[str, list[_Gain]]) -> Iterator[tuple[tuple[_Gain, ...], _Gain]]:
    """Yield the gains of all models and their mean, one input size of each model at a time."""
    return ((chosen, _average_gains(chosen)) for chosen in product(*gains.values()))


def _collect_gains(pairs: pd.DataFrame) -> dict[str, list[_Gain]]:
    gains: dict[str, list[_Gain]] = {}
    for (model, size), group in pairs.groupby(["model", "input_size"], sort=True):
        middle, highest, lowest = group["ratio"].median(), group["ratio_high"].max(), group["ratio_low"].min()
        gain = _Gain(f"{model} at {size} px", *(1 - float(ratio) for ratio in (middle, highest, lowest)))
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
    return _Gain("arithmetic mean", value, value - below, value + above)


def _evaluate_table(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the table by its least plausible time, under the reading that is kindest to each time."""
    study = context.study
    kindest = [min(_read_times(study, row), key=lambda time: time.severity) for row in study.rows]
    found = [time for time in kindest if time.rate.plausibility != "possible"]
    found.sort(key=lambda time: time.severity, reverse=True)
    impossible = sum(time.rate.plausibility == "impossible" for time in found)
    reason = (
        f"under every reading of its work, {len(found)} of its {len(study.rows)} times are shorter than the "
        f"stated device can do the work in by direct convolutions; {impossible} of them even by Winograd's F(4x4, 3x3)"
    )
    return ClaimResult(
        claim=claim,
        verdict=VERDICTS[found[0].rate.algorithm] if found else "not tested here",
        reason=reason + (f". The worst: {found[0].row.model}, {found[0].describe()}" if found else ""),
        arithmetic=(
            *(f"{time.row.model} ({time.rate.plausibility}): {time.describe()}" for time in found),
            *(describe_algorithm(time.rate) for time in found[:1]),
            *claim.facts,
            _describe_bound(study),
            *study.remarks.values(),
        ),
    )


def _evaluate_stated(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Return what stands in the file, with what runs have beside it."""
    measured: tuple[str, ...] = ()
    if claim.measured == "speedups":
        measured = list_measured(context.select("speedups", claim.model, claim.phase))
    elif claim.measured == "energies":
        measured = list_energies(context.select("speedups", claim.model, claim.phase))
    elif claim.measured == "precisions":
        measured = list_measured(context.pairs["precisions"])
    return ClaimResult(
        claim=claim,
        verdict=claim.verdict,
        reason=claim.reason,
        findings=claim.findings,
        arithmetic=claim.facts,
        measured=measured,
    )


_EVALUATORS: Mapping[ClaimKind, Callable[[Claim, ClaimContext], ClaimResult]] = {
    "speedup": evaluate_speedup,
    "lightness": evaluate_lightness,
    "phases": evaluate_phases,
    "latency": evaluate_gain,
    "fusion": evaluate_gain,
    "table": _evaluate_table,
    "stated": _evaluate_stated,
}


def evaluate_claims(context: ClaimContext) -> tuple[ClaimResult, ...]:
    """Return a result for each claim of the study, in its order."""
    return tuple(_EVALUATORS[claim.kind](claim, context) for claim in context.study.claims)
