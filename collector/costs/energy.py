"""Find the energy of a cell's samples: measured where the GPU or the CPU sockets count joules, else estimated."""

from collections.abc import Sequence

import pandas as pd

from collector.costs.document import Energy, Figure
from collector.prices.offers import find_power
from collector.prices.table import PowerRow, PriceTable
from collector.results.frames import Row
from collector.statistics import Estimate, estimate_cell

THOUSAND = 1000
CPU_SOCKETS = "CPU sockets"
GPU_ENERGY, CPU_ENERGY = "gpu_energy_per_sample_joules", "cpu_energy_per_sample_joules"


def make_figure(estimate: Estimate) -> Figure:
    """Return an estimate as a figure of a document."""
    low, high = estimate.interval or (None, None)
    return Figure(value=estimate.center, low=low, high=high)


def name_hardware(row: Row) -> str:
    """Return the name of a cell's GPU, or the model of its CPU; empty where it is not known."""
    name = row["gpu_name" if row["device"] == "gpu" else "cpu_model"]
    return "" if pd.isna(name) else str(name)


def find_energy(row: Row, repeats: Sequence[Row], table: PriceTable, seconds_per_1000: Figure) -> Energy | None:
    """Return the energy of 1,000 samples of a cell; None where it was not measured and no power is known.

    `row`: of the summary. `repeats`: rows of the results, those that the cell's figures come from.
    """
    if row["device"] == "gpu":
        return _measure_gpu(repeats) or _estimate_gpu(row, table, seconds_per_1000)
    return _measure_cpu(repeats) or _estimate_cpu(row, table, seconds_per_1000)


def _measure_gpu(repeats: Sequence[Row]) -> Energy | None:
    """Return the energy of the GPUs, and of the CPU sockets beside them where these were read in every repeat."""
    of_gpus, of_cpus = (_list_values(repeats, name) for name in (GPU_ENERGY, CPU_ENERGY))
    if of_gpus is None:
        return None
    method = f"GPU: {repeats[0]['gpu_energy_source']}"
    if of_cpus is None:
        return _make_measured(of_gpus, repeats, ("GPU",), method)
    both = [gpu + cpu for gpu, cpu in zip(of_gpus, of_cpus, strict=True)]
    return _make_measured(both, repeats, ("GPU", CPU_SOCKETS), f"{method}; CPU sockets: RAPL")


def _measure_cpu(repeats: Sequence[Row]) -> Energy | None:
    values = _list_values(repeats, CPU_ENERGY)
    return None if values is None else _make_measured(values, repeats, (CPU_SOCKETS,), "CPU sockets: RAPL")


def _make_measured(values: Sequence[float], repeats: Sequence[Row], covers: tuple[str, ...], method: str) -> Energy:
    estimate = estimate_cell(values, [repeat["machine"] for repeat in repeats])
    figure = make_figure(estimate).scale(THOUSAND)
    return Energy(joules_per_1000_samples=figure, covers=covers, is_estimate=False, method=method)


def _estimate_gpu(row: Row, table: PriceTable, seconds_per_1000: Figure) -> Energy | None:
    power = find_power(table, "gpu", name_hardware(row))
    if power is None:
        return None
    num_gpus = int(row["num_gpus"])
    formula = f"at most GPUs x full power x time, with {power.full_watts:g} W for {power.device}"
    calculation = f"{num_gpus} x {power.full_watts:g} W x {seconds_per_1000.value:.3g} s"
    return _make_estimate(seconds_per_1000, num_gpus * power.full_watts, "GPU", formula, calculation, power)


def _estimate_cpu(row: Row, table: PriceTable, seconds_per_1000: Figure) -> Energy | None:
    """Return vCPUs x idle power + busy vCPUs x (full - idle power), times the time of 1,000 samples."""
    power = find_power(table, "vcpu", name_hardware(row))
    if power is None or power.idle_watts is None or pd.isna(row["num_threads"]):
        return None
    num_threads, own = int(row["num_threads"]), row["cpu_own_cores"]
    busy = float(num_threads) if pd.isna(own) else min(float(own), float(num_threads))
    watts = num_threads * power.idle_watts + busy * (power.full_watts - power.idle_watts)
    formula = (
        "(vCPUs x idle power + busy vCPUs x (full power - idle power)) x time, with "
        f"{power.idle_watts:g} and {power.full_watts:g} W per vCPU"
    )
    rise = power.full_watts - power.idle_watts
    seconds = seconds_per_1000.value
    calculation = f"({num_threads} x {power.idle_watts:g} W + {busy:.3g} x {rise:.3g} W) x {seconds:.3g} s"
    return _make_estimate(seconds_per_1000, watts, "vCPUs", formula, calculation, power)


def _make_estimate(seconds: Figure, watts: float, part: str, formula: str, calculation: str, power: PowerRow) -> Energy:
    return Energy(
        joules_per_1000_samples=seconds.scale(watts),
        covers=(part,),
        is_estimate=True,
        method=f"{part}, estimated: {formula} ({power.source}, {power.date})",
        calculation=calculation,
    )


def _list_values(repeats: Sequence[Row], name: str) -> list[float] | None:
    """Return the positive values of all repeats; None where one of them has none."""
    values = [repeat[name] for repeat in repeats]
    if not values or any(pd.isna(value) or value <= 0 for value in values):
        return None
    return [float(value) for value in values]
