"""Evaluate the claim of a matrix product's times on CPU and GPU."""

from collector.claims.measurements import describe_speedups, describe_times
from collector.claims.plausibility import Limit, Rate, Work, describe_rate, describe_seconds, is_too_slow
from collector.claims.study import Claim
from collector.claims.verdicts import ClaimContext, ClaimResult, Finding
from collector.units import GFLOPS, format_number, format_significant


def evaluate_product(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim by arithmetic: what rate its times imply, and whether a kernel's time can be so long."""
    assert claim.flops
    assert claim.cpu_seconds
    assert claim.gpu_seconds
    assert claim.slowest_gpu
    limit = Limit(device=claim.slowest_gpu.name, flops_per_second=claim.slowest_gpu.tflops * 1e12)
    rate = Rate(work=Work(label="FP32", flops=claim.flops, winograd_share=0.0), seconds=claim.gpu_seconds, limit=limit)
    others = context.measurements.others
    pairs, rows = others[others["model"] == claim.model], context.measurements.other_rows
    return ClaimResult(
        statement=claim.statement,
        verdict="not tested here",
        reason="neither the GPU, nor the CPU, nor what was timed beside the product is stated",
        findings=_find_other_time(rate),
        arithmetic=(
            f"on the CPU {describe_seconds(claim.cpu_seconds)} for {format_number(claim.flops, GFLOPS)} GFLOP are "
            f"{format_number(claim.flops / claim.cpu_seconds, GFLOPS)} GFLOP/s; over the GPU's time that is a "
            f"factor of {format_significant(claim.cpu_seconds / claim.gpu_seconds)}",
            f"on the GPU {describe_rate(rate)}",
            *claim.facts,
        ),
        measured=(
            *describe_speedups(context.measurements, pairs[pairs["ratio"].notna()]),
            *describe_times(rows[(rows["model"] == claim.model) & (rows["device"] == "gpu")]),
        ),
    )


def _find_other_time(rate: Rate) -> tuple[Finding, ...]:
    """Return the finding that most of a time is no kernel's, where even the slowest GPU would need far less."""
    if not is_too_slow(rate, rate.limit.flops_per_second):
        return ()
    least = rate.work.flops / rate.limit.flops_per_second
    reason = (
        f"{describe_rate(rate)}; at that peak the product takes {describe_seconds(least)}. Either most of it "
        "was spent on something else than the product, or the GPU was a far slower one"
    )
    return (Finding(name="no kernel time", reason=reason),)
