"""Relate the results of a run's CPU cells to one peak per host, so that the shares of a column have one denominator.

Each process measures the host's matrix product for itself, at the clock that it happened to find. The highest of all
figures of a host, in a precision and with a number of threads, is the host's peak of the run.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from collector.results.attempts import IntArray
from collector.results.frames import RESULT_COLUMNS, Row
from collector.results.host_products import Host, HostProducts, Products, summarize_products

# The framework of figures in results that do not hold a HostPeak: those were the highest so far, of all frameworks.
ALL_FRAMEWORKS = "all frameworks"

RELATED_COLUMNS = (
    "peak_flops_per_second",
    "peak_source",
    "share_of_peak",
    "min_step_seconds",
    "bound",
    "share_of_roofline",
    "notes",
)
"""The columns of the results that depend on the run's other results."""
_FIGURES = (
    "flops_per_step",
    "least_flops_per_step",
    "achieved_flops_per_second",
    "center_step_seconds",
    "verdict",
    "fault_verdicts",
)


@dataclass(kw_only=True)
class HostFigures:
    """The figures of one host in one run, in operations per second; a host may have 100,000 results."""

    num_results: int = 0
    theoretical: float | None = None
    """The highest of the results."""
    products: defaultdict[str, Products] = field(default_factory=lambda: defaultdict(Products))
    """By framework."""

    def add(self, framework: str | None, theoretical: float | None, product: float | None, peak: float | None) -> None:
        """Add the figures of a result; those made before results held a HostPeak hold the peak of their time.

        `framework`: None where the result holds no HostPeak; `peak`: that of its roofline.
        """
        if framework is not None:
            if product:
                self.products[framework].rates.append(product)
            if theoretical:
                self.theoretical = max(theoretical, self.theoretical or 0.0)
        elif peak:
            self.products[ALL_FRAMEWORKS].rates.append(peak)
        self.num_results += 1

    @property
    def peak_flops_per_second(self) -> float | None:
        """The highest of all, in operations per second; None without any."""
        highest = [products.high for products in self.products.values()]
        return max(highest if self.theoretical is None else [*highest, self.theoretical], default=None)

    @property
    def source(self) -> str:
        """Where the highest comes from, in words."""
        if self.peak_flops_per_second == self.theoretical:
            found = "cores x width x clock"
        else:
            framework = max(self.products, key=lambda name: self.products[name].high)
            found = f"matrix product in {framework}"
        return f"{found}; the highest of {self.num_results} results on this host"


class HostPeaks:
    """The peaks of all hosts of a run."""

    def __init__(self, attempts: pa.Table, order: IntArray) -> None:
        """Read the figures of the attempts (rows of the table of attempts) in this order."""
        self._attempts = attempts.select([*RELATED_COLUMNS, *_FIGURES])
        self._figures: dict[Host, HostFigures] = {}
        self._hosts = _identify_hosts(attempts)
        if not any(self._hosts):
            return
        names = ("host_framework", "host_theoretical_flops_per_second", "cpu_product_flops_per_second")
        columns = [attempts[name].to_pylist() for name in (*names, "peak_flops_per_second")]
        for index in order:
            if (host := self._hosts[index]) is not None:
                figures = self._figures.setdefault(host, HostFigures())
                figures.add(*(column[index] for column in columns))

    def relate(self, counted: IntArray) -> dict[str, "pd.Series[Any]"]:
        """Return the columns of each repeat's roofline with shares of its host's peak, and the notes that go with them.

        `counted`: of each repeat the row of the attempt that counts, -1 without one. A CPU's roofline is that of
        arithmetic alone. Results of GPUs, and of hosts without a peak, stay as they are: where all are such, nothing is
        returned.
        """
        if not self._figures:
            return {}
        chosen = self._attempts.take(pa.array(counted, mask=counted < 0))
        columns: dict[str, list[Any]] = {name: chosen[name].to_pylist() for name in (*RELATED_COLUMNS, *_FIGURES)}
        for place, index in enumerate(counted):
            host = self._hosts[index] if index >= 0 else None
            if (
                host is None
                or columns["flops_per_step"][place] is None
                or columns["center_step_seconds"][place] is None
            ):
                continue
            figures = self._figures[host]
            if (peak := figures.peak_flops_per_second) is not None:
                row = {name: values[place] for name, values in columns.items()}
                for name, value in _relate(row, peak, figures.source).items():
                    columns[name][place] = value
        return {name: pd.Series(columns[name], dtype=RESULT_COLUMNS[name]) for name in RELATED_COLUMNS}

    def list_products(self) -> tuple[HostProducts, ...]:
        """Return at which rates the matrix products of each host and framework ran."""
        return tuple(
            products
            for host, figures in self._figures.items()
            for products in summarize_products(host, figures.products)
        )


def _identify_hosts(attempts: pa.Table) -> list[Host | None]:
    """Return the host that each CPU cell ran on; None for a GPU cell, and where it is not known."""
    if not pc.any(pc.equal(attempts["device"], "cpu")).as_py():
        return [None] * attempts.num_rows
    names = ("device", "host", "cpu_model", "precision", "num_threads")
    columns = [attempts[name].to_pylist() for name in names]
    known: dict[tuple[Any, ...], Host] = {}
    hosts: list[Host | None] = []
    for device, name, cpu_model, precision, num_threads in zip(*columns, strict=True):
        if device != "cpu" or name is None:
            hosts.append(None)
            continue
        key = (name, cpu_model, precision, num_threads)
        if key not in known:
            known[key] = Host(name=name, cpu_model=cpu_model, precision=precision, num_threads=num_threads)
        hosts.append(known[key])
    return hosts


def _relate(row: Row, peak: float, source: str) -> Row:
    """Return the columns of one result by this peak."""
    min_step_seconds = row["flops_per_step"] / peak
    share = row["achieved_flops_per_second"] / peak
    related = {
        "peak_flops_per_second": peak,
        "peak_source": source,
        "share_of_peak": share,
        "min_step_seconds": min_step_seconds,
        "bound": "arithmetic",
        "share_of_roofline": min_step_seconds / row["center_step_seconds"],
    }
    if row["verdict"] is not None and row["flops_per_step"]:
        related["notes"] = _add_note(row, share)
    return related


def _add_note(row: Row, share_of_peak: float) -> str | None:
    """Return the notes, with one more where the process, or the run's peak, says that it was faster than the host.

    The verdict stays: it was passed on what its process knew, and the run's peak is at least as high.
    """
    notes: str | None = row["notes"]
    least = row["least_flops_per_step"]
    share = share_of_peak * (1.0 if least is None else least / row["flops_per_step"])
    if share <= 1 and "over-peak" not in (row["fault_verdicts"] or "").split():
        return notes
    note = f"{share:.0%} of the host's peak of this run, by the fewest operations that known algorithms need"
    return note if notes is None else f"{notes}; {note}"
