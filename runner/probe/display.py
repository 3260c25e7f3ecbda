"""Show a search for the largest batch while it goes on, and say at its end what was found."""

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.text import Text

from bench.schema import Framework
from runner.probe.batch_search import Trial
from runner.probe.search import Probe, ProbeReport
from runner.terminal import can_redraw, join_printable

OUTCOME_STYLES = {"fits": "green", "out-of-memory": "yellow", "time-limit": "red", "failure": "red"}


def show_search(search: Probe, interpreters: Mapping[Framework, Path], lock: int, console: Console) -> ProbeReport:
    """Run the search; print each trial as it ends, then what was found."""
    console.print(_describe_search(search), soft_wrap=True)
    status = console.status("") if can_redraw(console) else None

    def show_start(batch_size: int) -> None:
        if status is not None:
            status.update(f"trying batch {batch_size:,}")
            status.start()

    def show_trial(trial: Trial) -> None:
        if status is not None:
            status.stop()
        console.print(describe_trial(trial), soft_wrap=True)

    try:
        report = search.search(interpreters, lock, show_start, show_trial)
    finally:
        if status is not None:
            status.stop()
    console.print(describe_report(report), soft_wrap=True)
    return report


def _describe_search(search: Probe) -> str:
    cell = search.cell
    place = search.gpu_name or "the CPU"
    name = f"{cell.model}, {cell.framework}, {cell.phase}, {cell.precision}, {cell.mode}"
    bounds = f"up to batch {search.max_batch_size:,} and {search.time_limit_seconds:,.0f} s"
    # TensorFlow has no cache that other processes can use.
    is_kept = cell.mode == "compiled" and cell.framework != "tensorflow"
    return f"probing {name} on {place}: {bounds}{', trials share a cache of compiled kernels' if is_kept else ''}"


def describe_trial(trial: Trial) -> Text:
    line = Text.assemble(
        f"batch {trial.batch_size:>9,}  ",
        (f"{trial.outcome:<13}", OUTCOME_STYLES[trial.outcome]),
        f"  {trial.seconds:6.1f} s",
    )
    if trial.peak_bytes is not None:
        line.append(f"  peak {_format_gibibytes(trial.peak_bytes)}")
    if trial.bytes_requested is not None:
        line.append(f"  asked for {_format_gibibytes(trial.bytes_requested)}")
    elif trial.message:
        line.append(f"  {join_printable(trial.message)}")
    return line


def describe_report(report: ProbeReport) -> str:
    largest, failing = report.largest_batch_size, report.smallest_failing_batch_size
    within = ""
    if report.memory_limit_bytes is not None:
        within = f" into {_format_gibibytes(report.memory_limit_bytes)}, the memory available here"
    known = f"batch {largest:,} fits{within}" if largest else f"no batch is known to fit{within}"
    if failing:
        known += f", {failing:,} does not"
    match report.ended_by:
        case "found" if largest:
            return f"largest batch that fits{within}: {largest:,} ({failing:,} does not)"
        case "found":
            return f"not even a batch of {failing:,} fits{within}"
        case "max-batch-size":
            return f"{known}; this is the upper bound, raise --max-batch-size to look further"
        case "time-limit" if report.tries and report.tries[-1].outcome == "time-limit":
            tried = f"{report.tries[-1].batch_size:,}"
            return (
                f"the time was up before batch {tried} had ended, which says nothing about its memory: {known}; raise "
                "--deadline to look further"
            )
        case "time-limit":
            return f"the time is up: {known}; raise --deadline to look further"
        case "failure":
            memory = "the GPU's memory" if report.cell.device == "gpu" else "memory"
            return f"the last trial failed for another reason than {memory}; {known}"


def _format_gibibytes(number: int) -> str:
    return f"{number / 2**30:.2f} GiB"
