"""Tables in base units come in, tables of formatted strings for people go out, for the report and the terminal."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from bench.schema import LeftOutCell
from collector.collection import Collection, SkippedDocument
from collector.frames import CELL_COLUMNS, Row, list_rows, make_frame
from collector.labels import add_labels, label_pairs, label_workloads
from collector.tables import summarize_cells
from collector.units import (
    MILLISECOND,
    RATIO,
    SECOND,
    THROUGHPUT,
    Unit,
    choose_memory_unit,
    format_interval,
    format_number,
)

# Columns that hold words; all others are numbers, read from the right.
WORDS = frozenset({"cell", "workload", "modes", "verdict", "hardware", "CPU", "GPU", "note", "key", "reason"})
MEMORY_TITLES = {
    "peak_rss_bytes": "process, peak resident",
    "peak_memory_allocated_bytes": "GPU, peak allocated",
    "peak_memory_reserved_bytes": "GPU, peak reserved",
}
PHASE_TITLES = {
    "import_seconds": "import",
    "build_seconds": "build",
    "first_step_seconds": "first step",
    "warmup_seconds": "warm-up",
    "steady_seconds": "timed window",
}

MAX_STDERR_CHARACTERS = 4000


@dataclass(frozen=True, kw_only=True)
class TableView:
    """A table of strings for people. Its first column names the row; `words` are the columns that hold no numbers."""

    caption: str
    frame: pd.DataFrame
    words: frozenset[str]


def present_step_times(summary: pd.DataFrame, phase: str) -> TableView:
    """Return step times (phase `train`) or latencies (`infer`) of the cells of `summary`, labelled by `add_labels`."""
    rows = summary[summary["phase"] == phase]
    columns = {"cell": rows["label"].to_list()} | _present_times(
        rows, "latency p50" if phase == "infer" else "step time"
    )
    if phase == "infer":
        columns["p95, ms"] = _format(rows["p95_step_seconds"], MILLISECOND)
        columns["p99, ms"] = _format(rows["p99_step_seconds"], MILLISECOND)
    columns |= {
        "samples/s": _format(rows["throughput_samples_per_s"], THROUGHPUT),
        "timed steps": [f"{count:,}" for count in rows["num_steps_taken"]],
        "repeats ok": _count_repeats(rows),
        "note": rows["note"].to_list(),
    }
    caption = {"train": "Training: time of one step", "infer": "Inference: latency of one batch"}[phase]
    return _view(caption, columns)


def present_memory(summary: pd.DataFrame) -> TableView:
    """Return the peaks of memory, the largest of the repeats; a peak that no cell has is left out."""
    rows = summary[summary["num_ok"] > 0]
    unit = choose_memory_unit(rows[list(MEMORY_TITLES)].max().dropna())
    columns = {"cell": rows["label"].to_list()}
    for name, title in MEMORY_TITLES.items():
        if rows[name].notna().any():
            columns[f"{title}, {unit.label}"] = _format(rows[name], unit)
    return _view("Peak memory, the largest of the repeats", columns)


def present_phases(summary: pd.DataFrame) -> TableView:
    """Return how long each part of a repeat took, the medians of the repeats."""
    rows = summary[summary["num_ok"] > 0]
    phases = {f"{title}, s": _format(rows[name], SECOND) for name, title in PHASE_TITLES.items()}
    return _view("Parts of a repeat, medians of the repeats", {"cell": rows["label"].to_list()} | phases)


def present_frameworks(comparison: pd.DataFrame) -> TableView:
    """Return the pairs of `compare_frameworks` with their verdicts."""
    columns = {
        "workload": label_workloads(comparison),
        "modes": (comparison["mode_tensorflow"] + " / " + comparison["mode_pytorch"]).to_list(),
        "TensorFlow, ms": _format(comparison["median_step_seconds_tensorflow"], MILLISECOND),
        "PyTorch, ms": _format(comparison["median_step_seconds_pytorch"], MILLISECOND),
        **_present_ratio(comparison, "TensorFlow / PyTorch"),
        "hardware": [describe_hardware(*values) for values in _list_hardware(comparison)],
        "note": comparison["note"].to_list(),
    }
    return _view("TensorFlow / PyTorch: modes, median step times and their ratio", columns)


def present_devices(comparison: pd.DataFrame) -> TableView:
    """Return the pairs of `compare_devices` with their verdicts."""
    columns = {
        "workload": label_pairs(comparison),
        "CPU, ms": _format(comparison["median_step_seconds_cpu"], MILLISECOND),
        "GPU, ms": _format(comparison["median_step_seconds_gpu"], MILLISECOND),
        **_present_ratio(comparison, "CPU / GPU"),
        "CPU": [describe_hardware(cpu, threads, None) for cpu, threads, _ in _list_hardware(comparison)],
        "GPU": comparison["gpu_name"].fillna("").to_list(),
        "note": comparison["note"].to_list(),
    }
    return _view("CPU / GPU: median step times and their ratio, the speedup", columns)


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
    return _view("Cells that cannot run here", {"cell": labels.to_list(), "reason": [cell.reason for cell in cells]})


def present_skipped(documents: Sequence[SkippedDocument]) -> TableView | None:
    """Return the keys that did not count, with the reasons."""
    if not documents:
        return None
    columns = {"key": [document.key for document in documents], "reason": [document.reason for document in documents]}
    return _view("Documents that did not count", columns)


def summarize_for_terminal(collection: Collection) -> pd.DataFrame:
    """Return one row of formatted strings per cell and environment, narrow enough for a terminal."""
    summary = add_labels(summarize_cells(collection))
    unit = choose_memory_unit(summary["peak_rss_bytes"].dropna())
    columns = {"cell": summary["label"].to_list()} | _present_times(summary, "step time")
    return pd.DataFrame(
        columns
        | {
            "samples/s": _format(summary["throughput_samples_per_s"], THROUGHPUT),
            f"peak RSS, {unit.label}": _format(summary["peak_rss_bytes"], unit),
            "repeats ok": _count_repeats(summary),
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
        f"{title}, ms": _format(rows["median_step_seconds"], MILLISECOND),
        "95 % interval, ms": _format_intervals(
            rows["interval_low_seconds"], rows["interval_high_seconds"], MILLISECOND
        ),
        "IQR of steps, ms": _format_intervals(rows["q1_step_seconds"], rows["q3_step_seconds"], MILLISECOND),
    }


def _present_ratio(comparison: pd.DataFrame, title: str) -> dict[str, list[str]]:
    return {
        title: _format(comparison["ratio"], RATIO),
        "95 % interval": _format_intervals(comparison["ratio_low"], comparison["ratio_high"], RATIO),
        "verdict": comparison["verdict"].to_list(),
    }


def _list_hardware(comparison: pd.DataFrame) -> list[tuple[str | None, int | None, str | None]]:
    return list(comparison[["cpu_model", "num_threads", "gpu_name"]].itertuples(index=False, name=None))


def _count_repeats(rows: pd.DataFrame) -> list[str]:
    return [f"{ok} of {planned}" for ok, planned in zip(rows["num_ok"], rows["num_planned"], strict=True)]


def _format(values: "pd.Series[float]", unit: Unit) -> list[str]:
    return [format_number(None if pd.isna(value) else float(value), unit) for value in values]


def _format_intervals(lows: "pd.Series[float]", highs: "pd.Series[float]", unit: Unit) -> list[str]:
    return [format_interval(low, high, unit) for low, high in zip(lows, highs, strict=True)]


def _view(caption: str, columns: dict[str, list[str]]) -> TableView:
    frame = pd.DataFrame(columns, dtype="str")
    if "note" in frame and not frame["note"].any():
        frame = frame.drop(columns="note")
    return TableView(caption=caption, frame=frame, words=WORDS & frozenset(frame.columns))
