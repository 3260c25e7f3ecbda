"""Evaluate the claim that light models gain most from a GPU and complex ones least."""

from collections.abc import Iterator, Mapping
from itertools import combinations, product
from math import inf

import pandas as pd

from collector.claims.measurements import describe_nearest, select_speedups, shorten
from collector.claims.stated_times import list_works
from collector.claims.study import Claim, Study
from collector.claims.verdicts import (
    ClaimContext,
    ClaimResult,
    Finding,
    Interval,
    Place,
    ReasonedVerdict,
    decide,
    list_intervals,
    place_interval,
)
from collector.units import GFLOP, format_number, format_significant

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
        is_measured=bool(nearest),
        findings=tuple(_find_disagreements(context)),
        arithmetic=(_describe_table(study),),
        measured=shorten(nearest),
    )


def _compare_classes(pairs: Mapping[str, pd.DataFrame], study: Study) -> ReasonedVerdict:
    """Return whether each model of a lighter class gains more than each of the next one."""
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
    """Return whether the light model's speedup is the higher one, by the pair of intervals that fits the claim best."""
    # How far it is ahead, in the worst and in the best case.
    leads = [(low - other_high, high - other_low) for (low, high), (other_low, other_high) in product(light, heavy)]
    places: list[Place] = [place_interval(lead, (0, inf)) for lead in leads]
    kindest_first: tuple[Place, ...] = ("inside", "across", "outside")
    return next(place for place in kindest_first if place in places)


def _find_disagreements(context: ClaimContext) -> Iterator[Finding]:
    """Return a finding per pair of models of which the one with more operations under every reading gains more."""
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
    """Return the fewest and the most FLOPs of a sample's inference over all readings."""
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
