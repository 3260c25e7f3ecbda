"""Evaluate the claim that TensorFlow's inference latency is lower than PyTorch's."""

import pandas as pd

from collector.claims.mean_gain import (
    Gain,
    compute_mean,
    describe_extremes,
    describe_gain,
    judge_gains,
)
from collector.claims.measurements import describe_pairs, find_stated_batches
from collector.claims.stated_times import compute_latency_gains
from collector.claims.study import Claim, Study
from collector.claims.verdicts import ClaimContext, ClaimResult, list_missing_intervals

WHAT = "Keras on TensorFlow in graph mode over PyTorch eager"


def evaluate_latency(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim that TensorFlow's latency is lower than PyTorch's by the claim's figure.

    Graph mode over PyTorch eager, at the stated batch, decides; other batches and modes are listed.
    """
    pairs = context.measurements.latencies
    own = select_modes(pairs, "graph", "eager")
    (verdict, reason), gain = judge_gains(float(claim.figure or 0), own, context.study, WHAT)
    return ClaimResult(
        statement=claim.statement,
        verdict=verdict,
        reason=reason,
        is_measured=bool(own["ratio"].notna().any()),
        gain=gain,
        extremes=describe_extremes(own),
        arithmetic=(_describe_table(context.study), *claim.facts),
        measured=(
            *describe_pairs(put_stated_first(own, context.study), "as long as"),
            *describe_pairs(_select_others(pairs), "as long as"),
            *list_missing_intervals(own),
        ),
    )


def select_modes(pairs: pd.DataFrame, subject: str, reference: str) -> pd.DataFrame:
    """Return the pairs of one mode over another."""
    return pairs[(pairs["mode_subject"] == subject) & (pairs["mode_reference"] == reference)]


def put_stated_first(pairs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return the pairs that have a ratio, those at the stated batch first."""
    measured = pairs[pairs["ratio"].notna()]
    order = (~find_stated_batches(measured, study)).sort_values(kind="stable").index
    return measured.loc[order]


def _select_others(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs of TensorFlow without fusion or with fused norms over PyTorch eager, and of both compiled."""
    chosen = (("unfused", "eager"), ("fused-norm", "eager"), ("compiled", "compiled"))
    found = pd.concat([select_modes(pairs, *modes) for modes in chosen])
    return found[found["ratio"].notna()]


def _describe_table(study: Study) -> str:
    gains = [Gain(name=model, value=gain, low=gain, high=gain) for model, gain in compute_latency_gains(study).items()]
    listed = ", ".join(describe_gain(gain) for gain in gains)
    return f"{study.table_name} says {listed}; {describe_gain(compute_mean(gains))}"
