"""Evaluate the claim that a GPU saves as much energy as time."""

from collector.claims.measurements import describe_energies, select_speedups
from collector.claims.study import Claim
from collector.claims.verdicts import ClaimContext, ClaimResult


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
