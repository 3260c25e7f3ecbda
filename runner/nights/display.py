"""Show what `watch` found: lines for people, one JSON document for programs, and Prometheus' text format."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bench.schema import Shift
from collector.nights.detection import MIN_NIGHTS_BEFORE
from collector.nights.records import RecordedChange
from runner.nights.watch import NightReport

STATES = ("pending", "confirmed", "dismissed", "undecided")


def list_lines(report: NightReport) -> list[str]:
    """Return what is known of the newest night, a line for each change of it."""
    lines = [
        f"night {report.night.run_id}: {report.num_cells} cells, the newest of {report.num_nights} nights of "
        f"{report.matrix}"
    ]
    if report.num_uncounted:
        lines.append(
            f"{report.num_uncounted} of {report.num_cells + report.num_uncounted} planned cells are not looked at: "
            "none of their repeats counts (they have no result or failed, or their verdict says that they were "
            "disturbed)"
        )
    if report.num_too_new:
        which = "nothing" if report.num_too_new == report.num_cells else f"of {report.num_too_new} cells nothing"
        lines.append(
            f"{which} can be said yet: a change is seen against {MIN_NIGHTS_BEFORE} nights with repeats that count, at "
            "the least"
        )
    for change in report.changes:
        lines += list_change_lines(change)
    if not report.changes and report.num_too_new < report.num_cells:
        lines.append("no change is suspected")
    return [*lines, *(f"warning: {warning}" for warning in report.warnings)]


def list_change_lines(change: RecordedChange) -> list[str]:
    """Return one change for people: what, since when, what became of it, and what changed beside it."""
    suspicion, decision = change.suspicion, change.decision
    shift = decision.shift if decision is not None and decision.shift is not None else suspicion.shift
    name = suspicion.cell_ids[0] if suspicion.num_cells == 1 else f"all {suspicion.num_cells} on {suspicion.hardware}"
    lines = [f"{get_state(change):<9}  {format_shift(shift)}  {name}  since {suspicion.first_run_id}"]
    if decision is not None:
        lines.append(f"           {decision.reason}")
    lines += [f"           {part.what}: {part.before} -> {part.after}" for part in suspicion.changes]
    return lines


def format_shift(shift: Shift) -> str:
    """Return by how much a step time changed, with its interval, in per cent."""
    low, middle, high = (100 * (value - 1) for value in (shift.low, shift.ratio, shift.high))
    return f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"


def get_state(change: RecordedChange) -> str:
    return "pending" if change.decision is None else change.decision.outcome


def make_document(report: NightReport) -> dict[str, Any]:
    """Return what is known of the newest night as JSON: its changes as the store has them."""
    return {
        "matrix": report.matrix,
        "night": report.night.run_id,
        "num_nights": report.num_nights,
        "num_cells": report.num_cells,
        "num_uncounted": report.num_uncounted,
        "num_too_new": report.num_too_new,
        "changes": [
            {
                "state": get_state(change),
                "suspicion": json.loads(change.suspicion.to_json()),
                "decision": None if change.decision is None else json.loads(change.decision.to_json()),
                "channels": sorted(change.channels),
            }
            for change in report.changes
        ],
        "warnings": list(report.warnings),
    }


class NightMetrics(Collector):
    """The metrics of the newest night that was looked at; none before the first."""

    def __init__(self) -> None:
        self.report: NightReport | None = None

    def collect(self) -> Iterator[Metric]:
        report = self.report
        if report is None:
            return
        counts = Counter(get_state(change) for change in report.changes if change.suspicion.direction == "slower")
        changes = GaugeMetricFamily(
            "benchmatrix_night_slowdowns", "Slowdowns of the newest night by state.", labels=["matrix", "state"]
        )
        for state in STATES:
            changes.add_metric([report.matrix, state], counts[state])
        yield changes
        ratios = GaugeMetricFamily(
            "benchmatrix_night_regression_ratio",
            "Step time after a confirmed regression of the newest night over the one before.",
            labels=["matrix", "cell_id", "change_id"],
        )
        for change in report.regressions:
            shift = change.suspicion.shift if change.decision is None else change.decision.shift
            for cell_id in change.suspicion.cell_ids:
                ratio = change.suspicion.shift.ratio if shift is None else shift.ratio
                ratios.add_metric([report.matrix, cell_id, change.suspicion.change_id], ratio)
        yield ratios
        yield GaugeMetricFamily(
            "benchmatrix_night_timestamp_seconds",
            "When the newest night began that was looked at, in seconds since 1970.",
            value=report.night.created_at.timestamp(),
        )


def format_metrics(report: NightReport) -> str:
    """Return the metrics of a night in Prometheus' text format, for the textfile collector of its node exporter."""
    registry, metrics = CollectorRegistry(), NightMetrics()
    metrics.report = report
    registry.register(metrics)
    return generate_latest(registry).decode()
