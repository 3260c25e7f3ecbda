"""The tables of shared devices: what each tenant gets, its latencies, all tenants together, who fell out of memory."""

from dataclasses import replace

import pandas as pd

from collector.analysis import Analysis
from collector.labels import add_labels
from collector.ratio_words import NO_DIFFERENCE, UNDECIDED, count_differences
from collector.sharing.tabulate import select_fallen
from collector.tables.columns import CELL, count_column, interval_column, number_column, text_column
from collector.tables.step_times import NOTE, REPEATS
from collector.tables.table import Column, Table, make_table, select_known, shorten_rows
from collector.units import JOULE, MILLISECOND, RATIO, THROUGHPUT, Unit, choose_memory_unit

ROLE_NAMES = {"cell": "the cell", "neighbour": "its neighbour"}
ROLE = text_column("tenants with", "role_name", is_optional=True)
NOT_COMPARED = text_column("not compared, because", "not_compared", is_optional=True)
SPEED_REMARK = (
    "All tenants run at once, and only the time in which all of them ran counts. Slowdown: the rate of the same work "
    "alone on the device over that of a tenant, the geometric mean of the tenants; beside it that of the slowest one."
)
LATENCY_REMARK = (
    "Percentiles of each repeat, over the steps of all its tenants of a kind, and the geometric mean of the repeats. "
    "Over alone: the same percentile of the same work alone on the device."
)
DEVICE_REMARK = (
    "Together: each tenant's rate over that of its work alone, added up; 1 is what one alone gets out of the device. A "
    "difference is stated where its interval excludes 1; these intervals hold together. "
    "Jain's index of these shares is 1 where all tenants get the same, and 1/n where one of n gets everything. Energy "
    "is that of the whole device over the samples of all tenants; over alone: what the same samples cost alone."
)
DECISION_WORDS = {"more": "more than one alone", "less": "less than one alone", UNDECIDED: NO_DIFFERENCE}


def make_tenant_speed_table(analysis: Analysis) -> Table | None:
    """Return what each tenant gets, against the same work alone; None where no cell shared its device."""
    rows = _name_roles(analysis.sharing)
    if rows.empty:
        return None
    columns = [
        CELL,
        ROLE,
        *_estimate_columns("each tenant", "tenant_samples_per_s", THROUGHPUT),
        number_column("alone", "alone_samples_per_s", THROUGHPUT),
        *_estimate_columns("slowdown", "slowdown", RATIO),
        *_estimate_columns("slowest tenant's", "slowest_slowdown", RATIO),
        REPEATS,
        NOT_COMPARED,
        NOTE,
    ]
    return make_table("Sharing: what each tenant gets, and what it gets alone", columns, rows, remark=SPEED_REMARK)


def make_tenant_latency_table(analysis: Analysis) -> Table | None:
    """Return the percentiles of the tenants' steps, against the same work alone; None where no cell shared."""
    columns = [
        column
        for percent in (50, 95, 99)
        for column in (
            *_estimate_columns(f"p{percent}", f"p{percent}_step_seconds", MILLISECOND),
            *_estimate_columns(f"p{percent} over alone", f"p{percent}_ratio", RATIO),
        )
    ]
    rows = select_known(_name_roles(analysis.sharing), columns)
    if rows.empty:
        return None
    caption = "Sharing: the latency of a tenant's step, and what the others do to it"
    return make_table(caption, [CELL, ROLE, *columns], rows, remark=LATENCY_REMARK)


def make_shared_device_table(analysis: Analysis) -> Table | None:
    """Return what all tenants get together, how evenly, and for what energy and memory; None where none shared."""
    sharing = analysis.sharing
    rows = sharing[(sharing["role"] == "cell") & (sharing["num_ok"] > 0)]
    if rows.empty:
        return None
    rows = rows.assign(words=rows["decision"].map(DECISION_WORDS))
    memory = choose_memory_unit(rows[["tenant_peak_bytes", "device_peak_bytes"]].max().dropna())
    columns = [
        CELL,
        number_column("together, over one alone", "aggregate_ratio", RATIO, is_optional=True),
        replace(interval_column("95 % interval", "joint_low", "joint_high", RATIO), is_optional=True),
        text_column("verdict", "words", is_optional=True),
        *_estimate_columns("Jain's index", "jain_index", RATIO),
        number_column("its lowest", "lowest_jain_index", RATIO, is_optional=True),
        *_estimate_columns("energy per sample", "joules_per_sample", JOULE),
        *_estimate_columns("over alone", "energy_ratio", RATIO),
        number_column("memory, fullest tenant", "tenant_peak_bytes", memory, is_optional=True),
        number_column("device, peak in use", "device_peak_bytes", memory, is_optional=True),
        NOT_COMPARED,
    ]
    remark = " ".join(filter(None, [DEVICE_REMARK, count_differences(rows)]))
    return make_table("Sharing: all tenants of a device together", columns, rows, remark=remark)


def make_fallen_table(analysis: Analysis) -> Table | None:
    """Return the tenants that fell out of memory, one row each; None where none did."""
    fallen = select_fallen(analysis.collection)
    if fallen.empty:
        return None
    rows, remark = shorten_rows(add_labels(fallen), "tenants.csv")
    memory = choose_memory_unit(rows[["peak_memory_reserved_bytes"]].max().dropna())
    columns = [
        CELL,
        count_column("repeat", "repeat"),
        count_column("tenant", "tenant"),
        text_column("others that ran", "num_running"),
        number_column("its peak reserved", "peak_memory_reserved_bytes", memory, is_optional=True),
        text_column("message", "error_message"),
    ]
    return make_table("Sharing: tenants that fell out of memory", columns, rows, remark=remark)


def _name_roles(sharing: pd.DataFrame) -> pd.DataFrame:
    names = sharing["role"].map(ROLE_NAMES)
    return sharing.assign(role_name=names.where(sharing["neighbour"].notna(), None))


def _estimate_columns(title: str, name: str, unit: Unit) -> list[Column]:
    interval = interval_column("95 % interval", f"{name}_low", f"{name}_high", unit)
    return [number_column(title, name, unit, is_optional=True), replace(interval, is_optional=True)]
