"""Evaluate the claim that TensorFlow's kernel fusion lowers inference latency.

Fusion is isolated inside TensorFlow: graph mode, where the remapper of its graph optimiser fuses kernels, over the same
cell in the mode `unfused`, where it is off. PyTorch has no part in that.
"""

import pandas as pd

from collector.claims.latency import put_stated_first, select_modes
from collector.claims.mean_gain import describe_extremes, judge_gains
from collector.claims.measurements import describe_pairs
from collector.claims.study import Claim
from collector.claims.verdicts import ClaimContext, ClaimResult, list_missing_intervals

WHAT = "Keras on TensorFlow in graph mode with fusion over the same without"


def evaluate_fusion(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim that fusion lowers latency by the claim's figure; fused norms and XLA are listed."""
    pairs = context.measurements.fusion
    own = select_modes(pairs, "graph", "unfused")
    (verdict, reason), gain = judge_gains(float(claim.figure or 0), own, context.study, WHAT)
    others = pd.concat([select_modes(pairs, mode, "graph") for mode in ("fused-norm", "compiled")])
    return ClaimResult(
        statement=claim.statement,
        verdict=verdict,
        reason=reason,
        is_measured=bool(own["ratio"].notna().any()),
        gain=gain,
        extremes=describe_extremes(own),
        arithmetic=claim.facts,
        measured=(
            *describe_pairs(put_stated_first(own, context.study), "as long as"),
            *describe_pairs(others[others["ratio"].notna()], "as long as"),
            *list_missing_intervals(own),
        ),
    )
