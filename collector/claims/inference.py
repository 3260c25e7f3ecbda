"""Evaluate the claims about TensorFlow's latency: against PyTorch's, and whether fusion is the reason.

Pairs are of inference on a GPU at fp32, at the stated input sizes, on synthetic data; any GPU and any batch count.
"""

from collections.abc import Sequence

import pandas as pd

from collector.claims.measurements import describe_pairs, shorten
from collector.claims.stated_times import compute_latency_gains
from collector.claims.study import Claim
from collector.claims.verdicts import (
    ClaimContext,
    ClaimResult,
    Place,
    ReasonedVerdict,
    decide,
    explain_missing_intervals,
    list_intervals,
    list_missing_intervals,
    place_interval,
)
from collector.labels import FRAMEWORK_NAMES
from collector.results.frames import list_rows
from collector.units import PERCENT, RATIO, format_interval, format_number, format_significant

# "About 15 %": from 10 to 20 %.
LATENCY_TOLERANCE = 0.05
# What the study compares, and what shows whether fusion is the reason: framework and mode.
VARIANTS = (("tensorflow", "graph"), ("tensorflow", "eager"), ("pytorch", "eager"))
SUBJECT = ["run_id_subject", "cell_id_subject", "environment_id_subject"]
MAX_NAMED = 4


def evaluate_latency(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim that TensorFlow's latency is lower than PyTorch's by the claim's figure."""
    gains = compute_latency_gains(context.study)
    listed = ", ".join(f"{model} {format_number(gain, PERCENT)}" for model, gain in gains.items())
    mean = format_number(sum(gains.values()) / len(gains), PERCENT)
    pairs = context.measurements.latencies
    own = _select_modes(pairs, "graph", "eager")
    verdict, reason = _compare_latency(float(claim.figure or 0), own)
    return ClaimResult(
        statement=claim.statement,
        verdict=verdict,
        reason=f"{reason}. In the study's own table the average is {mean} %",
        arithmetic=(f"the study's own table says {listed} %, on average {mean} %", *claim.facts),
        measured=(
            *shorten(describe_pairs(_select_measured(own), "as long as")),
            *shorten(describe_pairs(_select_measured(_select_modes(pairs, "compiled", "compiled")), "as long as")),
            *list_missing_intervals(own),
        ),
    )


def evaluate_fusion(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim that fusion, taken as tf.function without XLA, is why TensorFlow is faster."""
    modes, latencies = context.measurements.modes, _select_modes(context.measurements.latencies, "graph", "eager")
    traced, fused = _select_modes(modes, "graph", "eager"), _select_modes(modes, "compiled", "graph")
    verdict, reason = _compare_fusion(traced, latencies)
    missing = _list_missing(context)
    xla = _describe_xla(fused)
    return ClaimResult(
        statement=claim.statement,
        verdict=verdict,
        reason=". ".join([reason, *([f"Not measured: {'; '.join(missing)}"] if missing else []), xla]),
        arithmetic=claim.facts,
        measured=(
            *shorten(describe_pairs(_select_measured(traced), "as fast as")),
            *shorten(describe_pairs(_select_measured(latencies), "as long as")),
            *shorten(describe_pairs(_select_measured(fused), "as fast as")),
            *list_missing_intervals(pd.concat([traced, latencies, fused])),
        ),
    )


def _select_modes(pairs: pd.DataFrame, subject: str, reference: str) -> pd.DataFrame:
    return pairs[(pairs["mode_subject"] == subject) & (pairs["mode_reference"] == reference)]


def _select_measured(pairs: pd.DataFrame) -> pd.DataFrame:
    return pairs[pairs["ratio"].notna()]


def _compare_latency(figure: float, pairs: pd.DataFrame) -> ReasonedVerdict:
    decisive = pairs[pairs["ratio_low"].notna()]
    if decisive.empty:
        missing = "TensorFlow's graph mode and PyTorch eager were not both measured on a GPU at the study's sizes"
        return "not tested here", explain_missing_intervals(pairs) or missing
    band = (1 - figure - LATENCY_TOLERANCE, 1 - figure + LATENCY_TOLERANCE)
    places = [place_interval(interval, band) for interval in list_intervals(decisive)]
    slower = int((decisive["ratio_low"] > 1).sum())
    span = f"{format_number((1 - band[1]), PERCENT)} to {format_number((1 - band[0]), PERCENT)} % less"
    gpus = ", ".join(sorted(set(decisive["gpu_name_subject"])))
    reason = (
        f"on {gpus}, TensorFlow's graph mode takes {format_significant(decisive['ratio'].min())} to "
        f"{format_significant(decisive['ratio'].max())} times as long as PyTorch eager over {len(decisive)} pairs. The "
        f"95 % intervals of {places.count('inside')} lie inside {span}, of {places.count('outside')} outside ({slower} "
        f"of these slower than PyTorch), and of {places.count('across')} are too wide to decide"
    )
    return decide(places), reason + _name_wide(decisive, places)


def _name_wide(pairs: pd.DataFrame, places: Sequence[Place]) -> str:
    """Return in brackets which intervals of `pairs` are too wide; empty where none is."""
    wide = [
        f"{row['model']} batch {row['batch_size']}: {format_interval(row['ratio_low'], row['ratio_high'], RATIO)}"
        for row, place in zip(list_rows(pairs), places, strict=True)
        if place == "across"
    ]
    rest = [f"and {len(wide) - MAX_NAMED} more"] if len(wide) > MAX_NAMED else []
    return f" ({', '.join([*wide[:MAX_NAMED], *rest])})" if wide else ""


def _compare_fusion(traced: pd.DataFrame, latencies: pd.DataFrame) -> ReasonedVerdict:
    """Evaluate the cells that were measured in all three of VARIANTS; a claim of lower latency must hold in each."""
    ready = [pairs[pairs["ratio_low"].notna()] for pairs in (traced, latencies)]
    cells = ready[0].merge(ready[1], on=SUBJECT, suffixes=("_traced", "_latency"))
    if cells.empty:
        reasons = [explain_missing_intervals(pairs) for pairs in (traced, latencies)]
        missing = "; ".join(dict.fromkeys(reason for reason in reasons if reason))
        none = "in no cell is there an interval both for TensorFlow's graph mode over its eager mode and over PyTorch"
        return "not tested here", f"{none}: {missing}" if missing else none
    rows = list_rows(cells)
    lowers = [_place_beside_one(row["ratio_low_traced"], row["ratio_high_traced"]) for row in rows]
    # A time ratio below 1 is a speedup above 1.
    leads = [_place_beside_one(1 / row["ratio_high_latency"], 1 / row["ratio_low_latency"]) for row in rows]
    both = sum(first == second == "inside" for first, second in zip(lowers, leads, strict=True))
    reason = (
        f"of {len(rows)} cells, TensorFlow's graph mode has a lower latency than its eager mode in "
        f"{lowers.count('inside')}, a higher one in {lowers.count('outside')}, and no difference is shown in "
        f"{lowers.count('across')}; a lower one than PyTorch eager in {leads.count('inside')}, a higher one in "
        f"{leads.count('outside')}, no difference shown in {leads.count('across')}; both lower in {both}. That graph "
        "mode is faster does not by itself make fusion the reason that TensorFlow is faster than PyTorch"
    )
    return decide([*lowers, *leads]), reason


def _place_beside_one(low: float, high: float) -> Place:
    """Return where the interval of a speedup lies: `inside` what is faster, `outside` it, or across 1."""
    if low > 1:
        return "inside"
    return "outside" if high < 1 else "across"


def _describe_xla(fused: pd.DataFrame) -> str:
    decisive = fused[fused["ratio_low"].notna()]
    if decisive.empty:
        return f"XLA over graph mode, beside it: {explain_missing_intervals(fused) or 'not measured'}"
    faster, slower = int((decisive["ratio_low"] > 1).sum()), int((decisive["ratio_high"] < 1).sum())
    return (
        f"XLA over graph mode, beside it: faster in {faster} of {len(decisive)} cells, slower in {slower}, no "
        f"difference shown in {len(decisive) - faster - slower}"
    )


def _list_missing(context: ClaimContext) -> list[str]:
    """Return per variant the cells that no run planned, of those that another variant has or the study states."""
    rows = list_rows(context.measurements.inference)
    have = {variant: {_key(row) for row in rows if (row["framework"], row["mode"]) == variant} for variant in VARIANTS}
    wanted = set().union(*have.values())
    measured = {model for model, _, _ in wanted}
    for model, workload in context.study.workloads.items():
        if model not in measured:
            wanted.add((model, workload.readings[0].input_size, workload.batch_size))
    missing: dict[str, list[str]] = {}
    for framework, mode in VARIANTS:
        if cells := wanted - have[framework, mode]:
            missing.setdefault(_name_cells(cells), []).append(f"{FRAMEWORK_NAMES[framework]} {mode}")
    return [f"{', '.join(variants)} at {cells}" for cells, variants in missing.items()]


def _key(row: dict[str, object]) -> tuple[str, int, int]:
    return str(row["model"]), int(str(row["input_size"])), int(str(row["batch_size"]))


def _name_cells(keys: set[tuple[str, int, int]]) -> str:
    """Return `conv6 224 px batch 1, 64, vgg16 224 px batch 64`."""
    batches: dict[str, list[str]] = {}
    for model, size, batch in sorted(keys):
        batches.setdefault(f"{model} {size} px", []).append(str(batch))
    return ", ".join(f"{name} batch {' and '.join(numbers)}" for name, numbers in batches.items())
