"""Evaluate the claim that a step of training takes so many times as long as one of inference, on the CPU."""

from collections.abc import Iterator, Sequence

import pandas as pd

from collector.claims.measurements import (
    describe_phases,
    find_stated_batches,
    find_stated_cpu,
    find_stated_sizes,
)
from collector.claims.speedup import SPEEDUP_TOLERANCE
from collector.claims.stated_times import ReadTime, choose_harshest_time, choose_kindest_time, describe_bound, read_time
from collector.claims.study import Claim, Study
from collector.claims.verdicts import (
    ClaimContext,
    ClaimResult,
    ReasonedVerdict,
    choose_verdict,
    decide,
    explain_missing_intervals,
    list_intervals,
    list_missing_intervals,
    place_interval,
)
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES
from collector.units import RATIO, format_interval, format_significant


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
        arithmetic=(*_list_ratios(study, context), *_describe_sides([*train, *infer]), describe_bound(study.cpu)),
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
    band = figure * (1 - SPEEDUP_TOLERANCE), figure * (1 + SPEEDUP_TOLERANCE)
    intervals = list_intervals(decisive)
    found = ", ".join(format_interval(*interval, RATIO) for interval in intervals)
    verdict = decide([place_interval(interval, band) for interval in intervals])
    return verdict, f"on a {study.cpu.name} the 95 % interval is {found}, the band {format_interval(*band, RATIO)}"


def _list_ratios(study: Study, context: ClaimContext) -> Iterator[str]:
    """Return for each model, framework and device of the table its ratio of times beside that of the operations."""
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


def _describe_sides(times: Sequence[ReadTime]) -> list[str]:
    return [time.describe() for time in times]
