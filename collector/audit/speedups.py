"""Judge the claims of GPU over CPU and of training over inference, by arithmetic and by the study's own work.

The study's own configuration is TensorFlow's graph mode on synthetic data at the stated batch and a stated input size.
PyTorch eager, the study's other one, is named beside it; all else is listed only.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from math import inf

import pandas as pd

from bench.schema import Device
from collector.audit.measurements import (
    ClaimContext,
    ClaimResult,
    ClaimVerdict,
    Finding,
    Interval,
    Place,
    ReasonedVerdict,
    choose_verdict,
    decide,
    describe_energies,
    describe_nearest,
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
from collector.audit.rates import TOLERANCE, Rate, explain_too_slow, is_too_slow
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
from collector.units import GFLOP, GFLOPS, RATIO, format_interval, format_number, format_significant

DEVICES: tuple[Device, ...] = ("cpu", "gpu")
Sides = tuple[ReadTime, ReadTime]
"""A time on the CPU and one on the GPU, under one reading."""


def evaluate_speedup(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate a claim of GPU over CPU in training or inference."""
    figure, sides = float(claim.figure or 0), _list_sides(claim, context)
    pairs = select_speedups(context.measurements, context.study, str(claim.model), claim.phase)
    verdict, reason = _decide_speedup(figure, pairs, sides, context.study)
    nearest = "; ".join(shorten(describe_nearest(pairs)))
    return ClaimResult(
        statement=claim.statement,
        verdict=verdict,
        reason=reason,
        nearest=f"Measured at the stated work {nearest}{_limit(verdict, pairs)}" if nearest else "",
        findings=_find_slow_baselines(sides, context.study),
        arithmetic=tuple(_calculate_speedup(claim, sides, context.study)),
        measured=(
            *describe_speedups(context.measurements, pairs[pairs["ratio"].notna()]),
            *list_missing_intervals(pairs),
        ),
    )


def _limit(verdict: ClaimVerdict, pairs: pd.DataFrame) -> str:
    nearest = pairs[pairs["is_nearest"]]
    if verdict != "not tested here" or nearest["is_stated_hardware"].any():
        return ""
    return "; this speaks neither for nor against the claim"


def _decide_speedup(figure: float, pairs: pd.DataFrame, sides: Sequence[Sides], study: Study) -> ReasonedVerdict:
    # Of the reading that is kindest to both sides, the less plausible one: one network made both times.
    worst = choose_kindest_time([choose_harshest_time(pair) for pair in sides])
    return choose_verdict(worst, _compare_speedup(figure, pairs, study))


def _list_sides(claim: Claim, context: ClaimContext) -> list[Sides]:
    study = context.study
    entries = (study.find_entry(str(claim.model), "tensorflow", device, claim.phase) for device in DEVICES)
    cpu, gpu = (read_time(study, entry, context.counted) for entry in entries)
    return list(zip(cpu, gpu, strict=True))


def _find_slow_baselines(sides: Sequence[Sides], study: Study) -> tuple[Finding, ...]:
    low_peak = study.cpu.low_peak_flops_per_second
    return tuple(
        Finding(
            name="too slow to be a baseline",
            scope=f"at {cpu.rate.work.label}",
            reason=f"{cpu.describe()}, and {explain_too_slow(cpu.rate, low_peak)}",
        )
        for cpu, _ in sides
        if is_too_slow(cpu.rate, low_peak)
    )


def _compare_speedup(figure: float, pairs: pd.DataFrame, study: Study) -> ReasonedVerdict:
    own = pairs[pairs["is_stated_work"] & pairs["is_stated_mode"]]
    same = own[own["is_stated_hardware"]]
    decisive = same[same["ratio_low"].notna()]
    if decisive.empty:
        return "not tested here", _explain_untested(pairs, own, same, study)
    band = (figure * (1 - TOLERANCE), figure * (1 + TOLERANCE))
    found: dict[ClaimVerdict, list[str]] = {}
    for size, group in decisive.groupby("input_size", sort=False):
        places = [place_interval(interval, band) for interval in list_intervals(group)]
        found.setdefault(decide(places), []).append(f"at {size} px {_describe_places(group, places, band)}")
    verdicts: tuple[ClaimVerdict, ...] = ("reproduced", "not decided", "not reproduced")
    verdict = next(verdict for verdict in verdicts if verdict in found)
    return verdict, f"on the stated hardware, {'; '.join(text for texts in found.values() for text in texts)}"


def _describe_places(pairs: pd.DataFrame, places: list[Place], band: Interval) -> str:
    words = {"inside": "inside", "outside": "outside", "across": "too wide to decide, across an edge of"}
    intervals = [
        f"{format_interval(*interval, RATIO)} times ({words[place]} the band)"
        for interval, place in zip(list_intervals(pairs), places, strict=True)
    ]
    return (
        f"the 95 % interval of the ratio alone is {', '.join(intervals)}, "
        f"the band {format_interval(*band, RATIO)} times, the figure within {TOLERANCE * 100:.0f} %"
    )


def _explain_untested(pairs: pd.DataFrame, own: pd.DataFrame, same: pd.DataFrame, study: Study) -> str:
    stated = f"a {study.gpu.name} over a {study.cpu.name}"
    if not same.empty:
        return f"measured on the stated hardware, but {explain_missing_intervals(same)}"
    if own["ratio"].notna().any():
        return f"the figure is of {stated}; measured here is other hardware"
    if not own.empty:
        return f"at the stated work, in TensorFlow's graph mode, {explain_missing_intervals(own)}"
    nearest = pairs[pairs["is_nearest"]]
    if not nearest.empty and not nearest["is_stated_hardware"].any():
        return f"the figure is of {stated}; measured here is other hardware"
    if pairs["ratio"].notna().any():
        return (
            "measured here is other work than the study's: not its batch, its input size and synthetic data in "
            "TensorFlow's graph mode, GPU and CPU both"
        )
    return explain_missing_intervals(pairs) or "no cell of this work was measured on both a GPU and a CPU"


def _calculate_speedup(claim: Claim, sides: Sequence[Sides], study: Study) -> list[str]:
    workload = study.workloads[str(claim.model)]
    lines = [side.describe() for pair in sides for side in pair]
    lines += [_count_readings(sides, study), describe_bound(study.cpu)]
    lines += _compare_peaks(float(claim.figure or 0), sides[0], study)
    ratios = [
        f"{format_significant(ratio)}x in {FRAMEWORK_NAMES[framework]}"
        for framework in FRAMEWORK_NAMES
        if (ratio := _find_table_ratio(claim, framework, study)) is not None
    ]
    lines.append(f"{study.table_name} gives {' and '.join(ratios)}")
    return [*lines, workload.remark] if workload.remark else lines


def _find_table_ratio(claim: Claim, framework: str, study: Study) -> float | None:
    times = {
        entry.device: entry.seconds
        for entry in study.table
        if (entry.model, entry.framework, entry.phase) == (claim.model, framework, claim.phase)
    }
    return times["cpu"] / times["gpu"] if len(times) == len(DEVICES) else None


def _count_readings(sides: Sequence[Sides], study: Study) -> str:
    labels = [
        cpu.rate.work.label
        for cpu, gpu in sides
        if cpu.rate.plausibility == gpu.rate.plausibility == "possible"
        and not is_too_slow(_keep_possible(cpu.rate, gpu.rate), study.cpu.low_peak_flops_per_second)
    ]
    return (
        f"one network has to explain both times, by direct convolutions on the GPU and fast enough for a baseline on "
        f"the CPU: {len(labels)} of {len(sides)} readings {'does' if len(labels) == 1 else 'do'}"
        + (f" ({', '.join(labels)})" if labels else "")
    )


def _keep_possible(cpu: Rate, gpu: Rate) -> Rate:
    if cpu.work.most_flops is None:
        return cpu
    most = min(cpu.work.most_flops, gpu.limit.flops_per_second * gpu.seconds)
    return replace(cpu, work=replace(cpu.work, most_flops=most))


def _compare_peaks(figure: float, sides: Sides, study: Study) -> list[str]:
    peak, cpu = study.gpu.high_peak_flops_per_second, study.cpu
    low, high = peak / cpu.high_peak_flops_per_second, peak / cpu.low_peak_flops_per_second
    span = f"the stated devices' likely peaks are {format_significant(low)} to {format_significant(high)} times apart"
    if figure - 0.5 <= high:  # figures are stated as whole numbers
        return [span]
    behind = f"{format_significant(figure / high)} to {format_significant(figure / low)}"
    slow, gpu = (side.entry.seconds for side in sides)
    most = format_number(peak * gpu / slow, GFLOPS)
    return [
        f"{span}: {figure:g}x needs a CPU that stays {behind} times further below its peak than the GPU",
        f"whatever was computed: a {study.gpu.name} at its peak does {format_number(peak * gpu, GFLOP)} GFLOP in its "
        f"time by direct convolutions, which the CPU then did at {most} GFLOP/s or less",
    ]


# As the abstract sorts them: light, mid-sized, complex.
CLASSES = (("conv6",), ("vgg16", "resnet18"), ("cyclegan",))


def evaluate_lightness(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Check whether heavier models gain more from the GPU in training, in the order that the study states.

    Only pairs on the stated hardware, at the study's own work, decide.
    """
    study = context.study
    pairs = {model: select_speedups(context.measurements, study, model, "train") for model in study.workloads}
    verdict, reason = _compare_classes(pairs, study)
    nearest = [f"{model}: {line}" for model, found in pairs.items() for line in describe_nearest(found)]
    return ClaimResult(
        statement=claim.statement,
        verdict=verdict,
        reason=reason,
        findings=tuple(_find_disagreements(context)),
        arithmetic=(_describe_table(study),),
        measured=shorten(nearest),
    )


def _compare_classes(pairs: Mapping[str, pd.DataFrame], study: Study) -> ReasonedVerdict:
    intervals = {model: _list_own_intervals(found) for model, found in pairs.items()}
    if missing := [model for model, found in intervals.items() if not found]:
        return "not tested here", (
            f"the order is of a {study.gpu.name} over a {study.cpu.name}, in TensorFlow's graph mode at the study's "
            f"own work; not measured there: {', '.join(missing)}"
        )
    orders = [
        (light, heavy)
        for lighter, heavier in zip(CLASSES[:-1], CLASSES[1:], strict=True)
        for light, heavy in product(lighter, heavier)
    ]
    places = {order: _place_order(intervals[order[0]], intervals[order[1]]) for order in orders}
    words = {"inside": "gains more than", "outside": "gains less than", "across": "is not shown to gain more than"}
    found = ", ".join(f"{light} {words[place]} {heavy}" for (light, heavy), place in places.items())
    return decide(list(places.values())), f"on the stated hardware {found}"


def _list_own_intervals(pairs: pd.DataFrame) -> list[Interval]:
    own = pairs[pairs["is_stated_work"] & pairs["is_stated_mode"] & pairs["is_stated_hardware"]]
    return list_intervals(own[own["ratio_low"].notna()])


def _place_order(light: list[Interval], heavy: list[Interval]) -> Place:
    # How far it is ahead, in the worst and in the best case.
    leads = [(low - other_high, high - other_low) for (low, high), (other_low, other_high) in product(light, heavy)]
    places: list[Place] = [place_interval(lead, (0, inf)) for lead in leads]
    kindest_first: tuple[Place, ...] = ("inside", "across", "outside")
    return next(place for place in kindest_first if place in places)


def _find_disagreements(context: ClaimContext) -> Iterator[Finding]:
    study = context.study
    spans = {model: _find_span(context, model) for model in study.workloads}
    gains = {model: _find_gain(study, model) for model in study.workloads}
    for first, second in combinations(study.workloads, 2):
        light, heavy = sorted((first, second), key=lambda model: spans[model])
        if spans[light][1] < spans[heavy][0] and gains[heavy] > gains[light]:
            works = [format_number(spans[heavy][0], GFLOP), format_number(spans[light][1], GFLOP)]
            found = [f"{format_significant(gains[model])}x" for model in (heavy, light)]
            yield Finding(
                name="its own table disagrees",
                reason=f"{heavy} computes more than {light} under every reading, {' against '.join(works)} GFLOP a "
                f"sample, and gains more, {' against '.join(found)}",
            )


def _find_span(context: ClaimContext, model: str) -> Interval:
    batch_size = context.study.workloads[model].batch_size
    works = list_works(context.study, model, "infer", context.counted)
    return (
        min(work.flops for work in works) / batch_size,
        max(work.most_flops or work.flops for work in works) / batch_size,
    )


def _find_gain(study: Study, model: str) -> float:
    cpu, gpu = (study.find_entry(model, "tensorflow", device, "train").seconds for device in ("cpu", "gpu"))
    return cpu / gpu


def _describe_table(study: Study) -> str:
    gains = ", ".join(f"{model} {format_significant(_find_gain(study, model))}x" for model in study.workloads)
    return f"{study.table_name} gives {gains}; CycleGAN's are at batch 1, the others' at 64"


def evaluate_phases(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate a claim of training over inference: by its two times, then by TensorFlow's graph mode on that CPU."""
    study, model = context.study, str(claim.model)
    pairs = context.measurements.phases
    pairs = pairs[(pairs["model"] == model) & (pairs["device"] == "cpu")]
    train, infer = (
        read_time(study, study.find_entry(model, "tensorflow", "cpu", phase), context.counted)
        for phase in ("train", "infer")
    )
    worst = choose_kindest_time([choose_harshest_time(sides) for sides in zip(train, infer, strict=True)])
    verdict, reason = choose_verdict(worst, _compare_phases(float(claim.figure or 0), pairs, study))
    return ClaimResult(
        statement=claim.statement,
        verdict=verdict,
        reason=reason,
        arithmetic=(
            *_list_ratios(study, context),
            *(time.describe() for time in (*train, *infer)),
            describe_bound(study.cpu),
        ),
        measured=(*describe_phases(pairs[pairs["ratio"].notna()]), *list_missing_intervals(pairs)),
    )


def _compare_phases(figure: float, pairs: pd.DataFrame, study: Study) -> ReasonedVerdict:
    own = pairs[find_stated_batches(pairs, study) & find_stated_sizes(pairs, study)]
    own = own[(own["framework"] == "tensorflow") & (own["mode"] == "graph")]
    same = own[find_stated_cpu(own, study, "subject")]
    decisive = same[same["ratio_low"].notna()]
    if decisive.empty:
        missing = explain_missing_intervals(same)
        elsewhere = "measured here is another CPU" if own["ratio"].notna().any() else "it was not measured"
        return "not tested here", f"the figure is of a {study.cpu.name}; {missing or elsewhere}"
    band = figure * (1 - TOLERANCE), figure * (1 + TOLERANCE)
    intervals = list_intervals(decisive)
    found = ", ".join(format_interval(*interval, RATIO) for interval in intervals)
    verdict = decide([place_interval(interval, band) for interval in intervals])
    return verdict, f"on a {study.cpu.name} the 95 % interval is {found}, the band {format_interval(*band, RATIO)}"


def _list_ratios(study: Study, context: ClaimContext) -> Iterator[str]:
    for train in study.table:
        infer = next(
            (
                entry
                for entry in study.table
                if entry.phase == "infer"
                and (entry.model, entry.framework, entry.device) == (train.model, train.framework, train.device)
            ),
            None,
        )
        if train.phase != "train" or infer is None:
            continue
        works = [
            format_significant(above.rate.work.flops / below.rate.work.flops)
            for above, below in zip(
                read_time(study, train, context.counted), read_time(study, infer, context.counted), strict=True
            )
        ]
        yield (
            f"{train.model}, {FRAMEWORK_NAMES[train.framework]} on the {DEVICE_NAMES[train.device]}: "
            f"{format_significant(train.seconds / infer.seconds)} to 1 in time, "
            f"{' or '.join(dict.fromkeys(works))} to 1 in operations"
        )


def evaluate_energy(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim by the power of both devices; energies that were read are listed."""
    study, figure = context.study, float(claim.figure or 0)
    saving = figure * study.cpu.power_watts / study.gpu.power_watts
    pairs = select_speedups(context.measurements, study, str(claim.model), "train")
    return ClaimResult(
        statement=claim.statement,
        verdict="not tested here",
        reason=f"the energy of a {study.gpu.name} and of two vCPUs was not measured; energy is saved by as large a "
        "factor as time only where both devices draw the same power",
        arithmetic=(
            f"two vCPUs draw about {study.cpu.power_watts:g} W (an estimate) and a {study.gpu.name} up to "
            f"{study.gpu.power_watts:g} W: at {figure:g} times the speed the GPU then saves energy by a factor of "
            f"about {saving:.0f} ({figure:g} x {study.cpu.power_watts:g} / {study.gpu.power_watts:g}), where the "
            f"implied claim is {figure:g}",
        ),
        measured=describe_energies(context.measurements, pairs[pairs["ratio"].notna()]),
    )
