"""What `benchmatrix run` does when everything is measured: print the table, write and publish the report."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from bench.schema import Run
from bench.store import LATEST_RUN_KEY, Store
from runner.reporting.publication import RepeatState, describe_ending, publish_report
from runner.reporting.report_files import REPORT_NAME, choose_output, fit_forecast, make_analyzer
from runner.reporting.stored_runs import load_collection, load_history, print_skipped

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.analysis import Analysis
    from collector.results.collection import Collection


def finish_run(
    store: Store, run: Run, console: Console, *, output: Path | None, with_report: bool, is_published: bool
) -> bool:
    """Collect and report a run and print its table; return whether every repeat ended well.

    `output`: folder for the report; None for the default. `is_published`: put the report into the store as well.
    """
    from collector.report.terminal import make_terminal_table, print_table

    collection = load_collection(store, run.run_id, writes_tables=True)
    print_table(console, make_terminal_table(collection))
    print_skipped(collection, console)
    analyze = make_analyzer(fit_forecast() if with_report else None)
    analysis = analyze(collection, load_history(store, collection))
    _print_answers(analysis, console)
    if with_report:
        path = _write_files(analysis, choose_output(output, run))
        console.print(f"report: {path}", soft_wrap=True)
        if is_published:
            _publish(store, collection, path, console)
    bad = collection.results[collection.results["status"] != "ok"]
    if len(bad):
        counts = ", ".join(f"{number} {state}" for state, number in Counter(bad["status"]).most_common())
        console.print(f"{len(bad)} of {len(collection.results)} repeats did not end well: {counts}", style="red")
    return not len(bad)


def _print_answers(analysis: "Analysis", console: Console) -> None:
    """Print what the run says and what it does not say."""
    from collector.answers.run_answers import answer_run
    from collector.answers.texts import list_lines

    console.print()
    for line in list_lines(answer_run(analysis)):
        console.print(line, soft_wrap=True)
    console.print()


def _write_files(analysis: "Analysis", directory: Path) -> Path:
    """Write the tables and the report; return the report's path."""
    from collector.export import write_collection
    from collector.files import replace_text
    from collector.report.html import make_page

    write_collection(analysis.collection, directory)
    replace_text(directory / REPORT_NAME, make_page(analysis))
    return directory / REPORT_NAME


def _publish(store: Store, collection: "Collection", path: Path, console: Console) -> None:
    rows = collection.results[list(RepeatState._fields)].to_numpy().tolist()
    ending = describe_ending(RepeatState(*row) for row in rows)
    keys = publish_report(store, collection.run, path.read_bytes(), ending)
    console.print(f"published: {', '.join(f'{store.url}/{key}' for key in keys)}", soft_wrap=True)
    if LATEST_RUN_KEY not in keys:
        console.print("latest/ holds a newer run and was not changed", soft_wrap=True)
