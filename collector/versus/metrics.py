"""The quantities that two sides can be compared in, with the words for better and worse. Smaller is better in all."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from collector.units import JOULE, MIB, MILLISECOND, Unit

MetricName = Literal["step-time", "time-per-sample", "pipelined-step-time", "peak-memory", "energy"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """What is compared of each repeat."""

    name: MetricName
    title: str
    columns: Mapping[str, str]
    """Device to the column of the results; a device that is not in it has no such figure."""
    unit: Unit
    base_unit: str
    is_per_sample: bool = False
    """Whether the column is of a whole step, which is divided by the cell's batch."""
    worse: str
    better: str
    has_intervals: bool = True
    """Whether repeats scatter as independent measurements do, so that Student's t applies. Memory does not: its
    repeats are mostly equal, and else differ by a whole workspace."""
    is_time: bool = False
    """Whether more of it is said as taking longer."""
    has_default_noise: bool = False
    """Whether the default noise between runs is that of this metric."""
    counts_all_tenants: bool = False
    """Whether it is of all tenants of a cell together; else a repeat has that of its first tenant alone."""

    @property
    def reading(self) -> str:
        """What the ratio is, in a sentence."""
        return f"B / A: {self.title} of B over that of A; above 1, B is {self.worse}."

    def name_tenants(self) -> "Metric":
        """Return the metric as it is called where cells have tenants: the title says whose it is."""
        whose = "all tenants'" if self.counts_all_tenants else "first tenant's"
        return replace(self, title=f"{whose} {self.title}")

    def read(self, row: Mapping[str, Any]) -> float | None:
        """Return the metric of one repeat in base units. None: it was not measured, or a device has no such figure.

        `row`: `device`, `batch_size` and the column of its device.
        """
        column = self.columns.get(row["device"])
        if column is None or row[column] is None:
            return None
        return float(row[column]) / (row["batch_size"] if self.is_per_sample else 1)


def choose_metric(free_fields: Collection[str]) -> MetricName:
    """Return the metric of a comparison for which none was named; `free_fields`: of a cell, named by a side.

    Of a larger batch a step takes longer and yet is worth more: it is compared by the time for one sample. Where the
    cells of both sides turn out to have equal batches, `compare_sides` takes the step time.
    """
    return "time-per-sample" if "batch_size" in free_fields else "step-time"


METRICS: dict[MetricName, Metric] = {
    "step-time": Metric(
        name="step-time",
        title="step time",
        columns={"cpu": "center_step_seconds", "gpu": "center_step_seconds"},
        unit=MILLISECOND,
        base_unit="seconds",
        worse="slower",
        better="faster",
        is_time=True,
        has_default_noise=True,
    ),
    "time-per-sample": Metric(
        name="time-per-sample",
        title="time per sample (step time / batch)",
        columns={"cpu": "center_step_seconds", "gpu": "center_step_seconds"},
        unit=replace(MILLISECOND, label="ms per sample"),
        base_unit="seconds",
        is_per_sample=True,
        worse="slower",
        better="faster",
        is_time=True,
        has_default_noise=True,
    ),
    "pipelined-step-time": Metric(
        name="pipelined-step-time",
        title="pipelined step time",
        columns={"gpu": "pipelined_step_seconds"},
        unit=MILLISECOND,
        base_unit="seconds",
        worse="slower",
        better="faster",
        is_time=True,
        has_default_noise=True,
    ),
    "peak-memory": Metric(
        name="peak-memory",
        title="peak memory",
        columns={"cpu": "peak_rss_bytes", "gpu": "peak_memory_allocated_bytes"},
        unit=MIB,
        base_unit="bytes",
        worse="larger",
        better="smaller",
        has_intervals=False,
    ),
    "energy": Metric(
        name="energy",
        title="energy per sample",
        columns={"cpu": "cpu_energy_per_sample_joules", "gpu": "gpu_energy_per_sample_joules"},
        unit=replace(JOULE, label="J per sample"),
        base_unit="joules",
        worse="higher",
        better="lower",
        counts_all_tenants=True,
    ),
}
