"""Tables in base units come in, tables of formatted strings for people go out, for the report and the terminal."""

from collections.abc import Sequence

import pandas as pd

from bench.schema import LeftOutCell
from collector.labels import add_labels
from collector.results.collection import Collection, SkippedDocument
from collector.results.frames import CELL_COLUMNS, Row, list_rows, make_frame
from collector.tables.summary import summarize_cells
from collector.tables.view import TableView, format_column, format_intervals, make_view
from collector.units import MILLISECOND, NOT_THERE, SECOND, THROUGHPUT, choose_memory_unit

MEMORY_TITLES = {
    "peak_rss_bytes": "process, peak resident",
    "peak_cgroup_bytes": "cgroup, peak",
    "peak_memory_allocated_bytes": "GPU, peak allocated",
    "peak_memory_reserved_bytes": "GPU, peak reserved",
    "gpu_memory_before_bytes": "device, before",
    "gpu_memory_peak_bytes": "device, peak in use",
}
PHASE_TITLES = {
    "import_seconds": "import",
    "build_seconds": "build",
    "first_step_seconds": "first step",
    "warmup_seconds": "warm-up",
    "steady_seconds": "timed window",
}

MAX_STDERR_CHARACTERS = 4000


def present_step_times(summary: pd.DataFrame, phase: str) -> TableView:
    """Return step times (phase `train`) or latencies (`infer`) of the cells of `summary`, labelled by `add_labels`."""
    rows = summary[summary["phase"] == phase]
    columns = {"cell": rows["label"].to_list()} | _present_times(
        rows, "latency p50" if phase == "infer" else "step time"
    )
    if phase == "infer":
        columns["p95, ms"] = format_column(rows["p95_step_seconds"], MILLISECOND)
        columns["p99, ms"] = format_column(rows["p99_step_seconds"], MILLISECOND)
    columns |= {
        "samples/s": format_column(rows["throughput_samples_per_s"], THROUGHPUT),
        "timed steps": [f"{count:,}" for count in rows["num_steps_taken"]],
        "repeats ok": _count_repeats(rows),
        "verdict": _describe_verdicts(rows),
        "note": rows["note"].to_list(),
    }
    caption = {"train": "Training: time of one step", "infer": "Inference: latency of one batch"}[phase]
    return make_view(caption, columns)


def present_memory(summary: pd.DataFrame) -> TableView:
    """Return the peaks of memory, the largest of the repeats; a peak that no cell has is left out."""
    rows = summary[summary["num_ok"] > 0]
    unit = choose_memory_unit(rows[list(MEMORY_TITLES)].max().dropna())
    columns = {"cell": rows["label"].to_list()}
    for name, title in MEMORY_TITLES.items():
        if rows[name].notna().any():
            columns[f"{title}, {unit.label}"] = format_column(rows[name], unit)
    return make_view("Peak memory, the largest of the repeats", columns)


def present_phases(summary: pd.DataFrame) -> TableView:
    """Return how long each part of a repeat took, the medians of the repeats."""
    rows = summary[summary["num_ok"] > 0]
    phases = {f"{title}, s": format_column(rows[name], SECOND) for name, title in PHASE_TITLES.items()}
    return make_view("Parts of a repeat, medians of the repeats", {"cell": rows["label"].to_list()} | phases)


def present_invalid(invalid: pd.DataFrame) -> TableView | None:
    """Return the rows of `list_invalid` with their reasons; None where every repeat is valid."""
    if invalid.empty:
        return None
    columns = {
        "cell": add_labels(invalid)["label"].to_list(),
        "repeat": [str(repeat) for repeat in invalid["repeat"]],
        "verdict": invalid["verdict"].to_list(),
        "reasons": invalid["verdict_reasons"].to_list(),
    }
    return make_view("Repeats that ended ok and are not valid", columns)


def present_failures(failures: pd.DataFrame) -> list[dict[str, str]]:
    """Return title, status, reason and stderr_tail of each row of `list_failures`."""
    return [
        {
            "title": f"{label}, repeat {row['repeat']}",
            "status": row["status"],
            "reason": _describe_failure(row),
            "stderr_tail": "" if pd.isna(row["stderr_tail"]) else row["stderr_tail"][-MAX_STDERR_CHARACTERS:],
        }
        for label, row in zip(add_labels(failures)["label"], list_rows(failures), strict=True)
    ]


def present_left_out(cells: Sequence[LeftOutCell]) -> TableView | None:
    """Return the cells of the matrix that cannot run where the run took place, with the reasons."""
    if not cells:
        return None
    labels = add_labels(make_frame([left_out.cell.model_dump() for left_out in cells], CELL_COLUMNS))["label"]
    return make_view(
        "Cells that cannot run here", {"cell": labels.to_list(), "reason": [cell.reason for cell in cells]}
    )


def present_skipped(documents: Sequence[SkippedDocument]) -> TableView | None:
    """Return the keys that did not count, with the reasons."""
    if not documents:
        return None
    columns = {"key": [document.key for document in documents], "reason": [document.reason for document in documents]}
    return make_view("Documents that did not count", columns)


def summarize_for_terminal(collection: Collection) -> pd.DataFrame:
    """Return one row of formatted strings per cell and environment, narrow enough for a terminal."""
    summary = add_labels(summarize_cells(collection))
    unit = choose_memory_unit(summary["peak_rss_bytes"].dropna())
    columns = {"cell": summary["label"].to_list()} | _present_times(summary, "step time")
    return pd.DataFrame(
        columns
        | {
            "samples/s": format_column(summary["throughput_samples_per_s"], THROUGHPUT),
            f"peak RSS, {unit.label}": format_column(summary["peak_rss_bytes"], unit),
            "repeats ok": _count_repeats(summary),
            "verdict": _describe_verdicts(summary),
            "note": summary["note"].to_list(),
        },
        dtype="str",
    )


def describe_hardware(cpu_model: str | None, num_threads: int | None, gpu_name: str | None) -> str:
    """Return `CPU model, 2 threads, GPU name`, without what is not known."""
    threads = "" if pd.isna(num_threads) else f"{num_threads} thread{'s' if num_threads != 1 else ''}"
    return ", ".join(str(part) for part in (cpu_model, threads, gpu_name) if not pd.isna(part) and part)


def _describe_failure(row: Row) -> str:
    """Return the reason of a failure with what is known of the attempt that counts; most statuses say their kind."""
    kind = {"error_kind": "kind"} if row["status"] == "failed" else {}
    names = kind | {"exit_code": "exit code", "signal": "signal", "attempt": "attempt"}
    details = [f"{name} {row[field]}" for field, name in names.items() if not pd.isna(row[field])]
    if row["num_attempts"] > 1:
        details.append(f"{row['num_attempts']} attempts")
    return f"{row['error_message']} ({', '.join(details)})" if details else str(row["error_message"])


def _present_times(rows: pd.DataFrame, title: str) -> dict[str, list[str]]:
    return {
        f"{title}, ms": format_column(rows["median_step_seconds"], MILLISECOND),
        "95 % interval, ms": format_intervals(rows["interval_low_seconds"], rows["interval_high_seconds"], MILLISECOND),
        "IQR of steps, ms": format_intervals(rows["q1_step_seconds"], rows["q3_step_seconds"], MILLISECOND),
    }


def _count_repeats(rows: pd.DataFrame) -> list[str]:
    return [f"{ok} of {planned}" for ok, planned in zip(rows["num_ok"], rows["num_planned"], strict=True)]


def _describe_verdicts(rows: pd.DataFrame) -> list[str]:
    return [_describe_verdict(row) for row in list_rows(rows)]


def _describe_verdict(row: Row) -> str:
    """Return `valid`, `1 of 3 valid; 2 noisy`; a dash without an ok repeat."""
    if not row["num_ok"]:
        return NOT_THERE
    if row["num_valid"] == row["num_ok"]:
        return "valid"
    return f"{row['num_valid']} of {row['num_ok']} valid; {row['faults']}"
