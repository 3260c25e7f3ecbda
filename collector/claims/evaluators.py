"""Evaluate claims by arithmetic and by what runs measured: one module per kind of claim.

Three verdicts are measured, on the stated hardware where the claim is about hardware, on any GPU where it is about a
framework: `reproduced`, `not reproduced`, `not decided`. Three are arithmetic on a time that the claim rests on, under
every reading of its work: `implausible without Winograd`, `implausible on the stated hardware`, `impossible on the
stated hardware` (collector.claims.plausibility). `peak rates only`: the figure is a ratio of data sheets. `not tested
here`: all else. Findings stand beside a verdict and decide nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from collector.claims.energy import evaluate_energy
from collector.claims.fusion import evaluate_fusion
from collector.claims.latency import evaluate_latency
from collector.claims.lightness import evaluate_lightness
from collector.claims.memory import evaluate_memory
from collector.claims.peak_ratios import evaluate_peaks
from collector.claims.phases import evaluate_phases
from collector.claims.product import evaluate_product
from collector.claims.speedup import evaluate_speedup
from collector.claims.study import Claim, ClaimKind
from collector.claims.table import evaluate_table
from collector.claims.text import evaluate_text
from collector.claims.verdicts import ClaimContext, ClaimResult

ABSTRACT = "abstract"
"""The key of the study's abstract in `Study.sources`."""


def evaluate_claim(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Return what arithmetic and runs say about `claim`, by the evaluator of its kind, and who reports the claim."""
    result = _EVALUATORS[claim.kind](claim, context)
    return replace(
        result,
        id=claim.id,
        is_headline=ABSTRACT in claim.sources,
        provenance=context.study.describe_provenance(claim),
        quote=claim.quote,
    )


def _evaluate_value(claim: Claim, context: ClaimContext) -> ClaimResult:
    return ClaimResult(
        statement=claim.statement, verdict="not tested here", reason="a judgement of value, not a measurement"
    )


_EVALUATORS: Mapping[ClaimKind, Callable[[Claim, ClaimContext], ClaimResult]] = {
    "speedup": evaluate_speedup,
    "lightness": evaluate_lightness,
    "phases": evaluate_phases,
    "latency": evaluate_latency,
    "fusion": evaluate_fusion,
    "table": evaluate_table,
    "memory": evaluate_memory,
    "energy": evaluate_energy,
    "text": evaluate_text,
    "product": evaluate_product,
    "peaks": evaluate_peaks,
    "judgement": _evaluate_value,
}
