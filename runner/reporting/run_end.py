"""What `benchmatrix run` does when everything is measured: print the table, write and publish the report."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from bench.schema import Run
from bench.store import LATEST_RUN_KEY, Store
from runner.reporting.publication import RepeatState, describe_ending, publish_report
from runner.reporting.report_files import REPORT_NAME, choose_output, make_analyzer
from runner.reporting.stored_runs import load_collection, load_history, print_skipped

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.analysis import Analysis
    from collector.results.collection import Collection


@dataclass(frozen=True, kw_only=True)
class RunEnd:
    """How a run ended."""

    num_by_status: dict[str, int]
    """Planned repeats by the status of their record; `missing` have none, `unreadable` one that cannot be read."""
    num_contaminated: int
    """Those that ended ok and that others disturbed, whatever graver verdict they have: they do not count, and are what
    --retry-contaminated measures again."""
    report: Path | None

    @property
    def num_repeats(self) -> int:
        return sum(self.num_by_status.values())

    @property
    def is_ok(self) -> bool:
        """Whether every repeat ended well."""
        return not self.num_by_status.keys() - {"ok"}


def finish_run(
    store: Store, run: Run, console: Console, *, output: Path | None, with_report: bool, is_published: bool
) -> RunEnd:
    """Collect and report a run, print its table and return how it ended.

    `output`: folder for the report; None for the default. `is_published`: put the report into the store as well.
    """
    from collector.last_run import compare_with_last
    from collector.report.terminal import print_summary

    collection = load_collection(store, run.run_id, writes_tables=True)
    print_skipped(collection, console)
    analyze = make_analyzer()
    since = compare_with_last(store, collection)
    analysis = replace(analyze(collection, load_history(store, collection)), since=since)
    print_summary(console, analysis)
    path = None
    if with_report:
        path = _write_files(analysis, choose_output(output, run))
        console.print(f"report: {path}", soft_wrap=True)
        if is_published:
            _publish(store, collection, path, console)
    num_by_status = Counter(map(str, collection.results["status"]))
    bad = Counter({status: number for status, number in num_by_status.items() if status != "ok"})
    if bad:
        counts = ", ".join(f"{number} {state}" for state, number in bad.most_common())
        console.print(f"{bad.total()} of {len(collection.results)} repeats did not end well: {counts}", style="red")
    return RunEnd(num_by_status=dict(num_by_status), num_contaminated=collection.num_contaminated, report=path)


def say_how_to_retry(end: RunEnd, console: Console, command: str | None) -> None:
    """Print how many repeats were contaminated, and the command that measures them again.

    `command` None: it is of no use elsewhere, as that of a pod.
    """
    if end.num_contaminated:
        how = "" if command is None else f". Measure them again when nobody else uses the machine:\n  {command}"
        line = f"{end.num_contaminated} of {end.num_repeats} repeats were contaminated by others, and do not count{how}"
        console.print(line, style="yellow", highlight=False, soft_wrap=True)


def _write_files(analysis: "Analysis", directory: Path) -> Path:
    """Write the tables and the report; return the report's path."""
    from collector.export import write_collection
    from collector.report.page import write_page

    write_collection(analysis.collection, directory)
    path = directory / REPORT_NAME
    write_page(analysis, path)
    return path


def _publish(store: Store, collection: "Collection", path: Path, console: Console) -> None:
    rows = collection.results[list(RepeatState._fields)].to_numpy().tolist()
    ending = describe_ending(RepeatState(*row) for row in rows)
    keys = publish_report(store, collection.run, path.read_bytes(), ending)
    console.print(f"published: {', '.join(f'{store.url}/{key}' for key in keys)}", soft_wrap=True)
    if LATEST_RUN_KEY not in keys:
        console.print("latest/ holds a newer run and was not changed", soft_wrap=True)
