"""The quantities that two sides can be compared in, with the words for better and worse. Smaller is better in all."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from collector.units import JOULE, MIB, MILLISECOND, Unit

MetricName = Literal["step-time", "time-per-sample", "pipelined-step-time", "peak-memory", "energy"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """What is compared of each repeat; the defaults are those of a time."""

    name: MetricName
    title: str
    columns: Mapping[str, str]
    """Device to the column of the results; a device that is not in it has no such figure."""
    unit: Unit = MILLISECOND
    base_unit: str = "seconds"
    worse: str = "slower"
    better: str = "faster"
    is_per_sample: bool = False
    """Whether the column is of a whole step, which is divided by the cell's batch."""
    has_intervals: bool = True
    """Whether repeats scatter as independent measurements do, so that Student's t applies. Memory does not: its
    repeats are mostly equal, and else differ by a whole workspace."""
    is_time: bool = True
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
        """Return the metric of one repeat in base units; None: not measured, or the device has no such figure."""
        column = self.columns.get(row["device"])
        if column is None or row[column] is None:
            return None
        return float(row[column]) / (row["batch_size"] if self.is_per_sample else 1)


_STEP = {"cpu": "center_step_seconds", "gpu": "center_step_seconds"}
METRICS: dict[MetricName, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="step-time", title="step time", columns=_STEP),
        Metric(
            name="time-per-sample",
            title="time per sample (step time / batch)",
            columns=_STEP,
            unit=replace(MILLISECOND, label="ms per sample"),
            is_per_sample=True,
        ),
        Metric(name="pipelined-step-time", title="pipelined step time", columns={"gpu": "pipelined_step_seconds"}),
        Metric(
            name="peak-memory",
            title="peak memory",
            columns={"cpu": "peak_rss_bytes", "gpu": "peak_memory_allocated_bytes"},
            unit=MIB,
            base_unit="bytes",
            worse="larger",
            better="smaller",
            has_intervals=False,
            is_time=False,
        ),
        Metric(
            name="energy",
            title="energy per sample",
            columns={"cpu": "cpu_energy_per_sample_joules", "gpu": "gpu_energy_per_sample_joules"},
            unit=replace(JOULE, label="J per sample"),
            base_unit="joules",
            worse="higher",
            better="lower",
            is_time=False,
            counts_all_tenants=True,
        ),
    )
}
"""Of a larger batch a step takes longer and yet is worth more: where no metric is named and the batches of the sides
differ, they are compared by the time for one sample."""
