"""The command `batches`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench.errors import UserError
from bench.input_files import explain_unread, read_input
from runner.commands.forecast import LevelOption
from runner.commands.options import CONSOLE, DEFAULT_STORE, StoreOption, make_error_console

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.batches import MemoryLine, ProbedLimit
    from runner.probe.search import ProbeReport


RunIdsArgument = Annotated[
    list[str], typer.Argument(metavar="RUN_ID", help="Ids of runs with GPU cells at several batch sizes.")
]
ProbesOption = Annotated[
    list[Path] | None,
    typer.Option("--probe", metavar="FILE", help="What `benchmatrix probe --json` printed, to hold the line against."),
]


def batches(
    run_ids: RunIdsArgument,
    store: StoreOption = DEFAULT_STORE,
    probe: ProbesOption = None,
    level: LevelOption = 95.0,
) -> None:
    """Fit memory over batch size to measured cells: the largest batch for cards of 16 to 141 GB, with intervals."""
    from collector.batches import describe_single_batches, fit_lines, list_single_batches
    from collector.results.load import join_results, load_distinct_runs
    from runner.reporting.stored_runs import open_existing_store, print_skipped

    if not 0 < level < 100:
        raise UserError(f"--level {level:g}: expected a percentage between 0 and 100, as in 95.")
    reports = {path: _read_probe(path) for path in probe or ()}
    collections = load_distinct_runs(open_existing_store(store), run_ids)
    for collection in collections:
        print_skipped(collection, make_error_console())
    results = join_results(collections)
    lines = fit_lines(results)
    on_no_line = [describe_single_batches(single) for single in list_single_batches(results)]
    if not lines:
        raise UserError(_explain_no_line(run_ids, on_no_line))
    probed = [
        [_summarize(path, report) for path, report in reports.items() if _is_same(report, line.key)] for line in lines
    ]
    _print_lines(lines, probed, level / 100, on_no_line)
    for path, report in reports.items():
        if not any(_is_same(report, line.key) for line in lines):
            CONSOLE.print(f"{path}: none of these cells is that of the search.")


def _explain_no_line(run_ids: list[str], on_no_line: list[str]) -> str:
    names = ", ".join(run_ids)
    if on_no_line:
        return f"{names}: no GPU cell ended ok at two batch sizes or more in one version. {' '.join(on_no_line)}"
    return (
        f"{names}: no GPU cell ended ok at two batch sizes or more; measure a matrix with several in the axis "
        "batch_size."
    )


def _print_lines(
    lines: "list[MemoryLine]", probed: "list[list[ProbedLimit]]", level: float, on_no_line: list[str]
) -> None:
    from collector.batches import describe_line

    for line, found in zip(lines, probed, strict=True):
        for sentence in describe_line(line, level, found):
            CONSOLE.print(sentence)
    for sentence in on_no_line:
        CONSOLE.print(sentence)


def _read_probe(path: Path) -> "ProbeReport":
    """Read a search that found a limit. Raise UserError where it is none."""
    from bench.schema import InvalidDocumentError, read_document
    from runner.probe.search import ProbeReport

    try:
        report = read_document(ProbeReport, read_input(path))
    except OSError as error:
        raise UserError(
            f"--probe {path}: {explain_unread(error)}; name what `benchmatrix probe --json` printed"
        ) from None
    except InvalidDocumentError as error:
        raise UserError(f"--probe {path}: is not what `benchmatrix probe --json` prints ({error}).") from error
    if report.ended_by != "found" or not report.largest_batch_size or not _list_available(report):
        raise UserError(f"--probe {path}: that search found no limit ({report.ended_by}); nothing to compare with.")
    return report


def _list_available(report: "ProbeReport") -> list[int]:
    return [trial.available_bytes for trial in report.tries if trial.available_bytes is not None]


def _summarize(path: Path, report: "ProbeReport") -> "ProbedLimit":
    from collector.batches import ProbedLimit

    return ProbedLimit(
        source=str(path),
        gpu_name=report.gpu or report.cell.device,
        largest_batch=(report.largest_batch_size or 0) // report.cell.num_gpus,
        available_bytes=max(_list_available(report)),
    )


def _is_same(report: "ProbeReport", key: Any) -> bool:
    cell = report.cell.model_dump()
    compared = [name for name in key if name in cell]
    return report.cell.device == "gpu" and all(cell[name] == key[name] for name in compared)
