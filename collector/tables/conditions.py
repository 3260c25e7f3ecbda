"""The summary of cells with labels comes in; tables of roofline, energy and devices for people go out."""

import pandas as pd

from collector.tables.view import TableView, fill_texts, format_column, format_known, make_view
from collector.units import (
    CELSIUS,
    CORES,
    GFLOP,
    JOULE,
    MEGAHERTZ,
    MILLISECOND,
    PERCENT,
    WATT,
    choose_rate_unit,
)

ENERGY_TITLES = {
    "gpu_idle_power_watts": ("GPU idle", WATT),
    "gpu_mean_power_watts": ("GPU mean", WATT),
    "gpu_energy_per_step_joules": ("GPU per step", JOULE),
    "gpu_energy_per_sample_joules": ("GPU per sample", JOULE),
    "cpu_energy_per_sample_joules": ("CPU sockets per sample", JOULE),
}
DEVICE_TITLES = {
    "cpu_own_cores": ("own use", CORES),
    "cpu_other_cores": ("others' use", CORES),
    "num_machine_cores": ("machine", CORES),
    "cpu_throttled_share": ("quota used up", PERCENT),
    "gpu_sm_clock_mhz": ("SM clock, median", MEGAHERTZ),
    "gpu_sm_clock_share": ("of its maximum", PERCENT),
    "gpu_max_temperature_celsius": ("hottest", CELSIUS),
}


def present_roofline(summary: pd.DataFrame) -> TableView | None:
    """Return how near each cell came to the bounds of its device; None where no cell says."""
    rows = summary[summary["flops_per_step"].notna()]
    if rows.empty:
        return None
    unit = choose_rate_unit(rows[["achieved_flops_per_second", "peak_flops_per_second"]].max().dropna())
    columns = {
        "cell": rows["label"].to_list(),
        "GFLOP per step": format_column(rows["flops_per_step"], GFLOP),
        f"achieved, {unit.label}": format_column(rows["achieved_flops_per_second"], unit),
        f"peak, {unit.label}": format_column(rows["peak_flops_per_second"], unit),
        "of peak, %": format_column(rows["share_of_peak"], PERCENT),
        "bound by": fill_texts(rows["bound"]),
        "bound, ms": format_column(rows["min_step_seconds"], MILLISECOND),
        "of the bound, %": format_column(rows["share_of_roofline"], PERCENT),
        "peak from": fill_texts(rows["peak_source"]),
    }
    return make_view("Roofline: arithmetic of a step, and how near it came to what the device can do", columns)


def present_energy(summary: pd.DataFrame) -> TableView | None:
    """Return power and energy of each cell that any was read of; None where there is none."""
    rows = summary[summary[list(ENERGY_TITLES)].notna().any(axis="columns")]
    if rows.empty:
        return None
    columns = {"cell": rows["label"].to_list()} | format_known(rows, ENERGY_TITLES)
    return make_view("Power and energy, medians of the repeats", columns)


def present_devices(summary: pd.DataFrame) -> TableView | None:
    """Return how CPUs and GPUs were used while each cell was measured; None where no cell says."""
    rows = summary[summary[list(DEVICE_TITLES)].notna().any(axis="columns")]
    if rows.empty:
        return None
    columns = {"cell": rows["label"].to_list()} | format_known(rows, DEVICE_TITLES)
    if rows["gpu_throttle_reasons"].notna().any():
        columns["throttled by"] = fill_texts(rows["gpu_throttle_reasons"])
    return make_view("Use of CPUs and GPUs while it was measured, medians of the repeats", columns)
