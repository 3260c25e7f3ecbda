"""The command `report`."""

from runner.commands.files_written import print_files
from runner.commands.next_steps import say, say_next
from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    GpuTableOption,
    IncludeInvalidOption,
    JsonOption,
    ModeratedOption,
    OutputOption,
    PricesOption,
    StoredRunArgument,
    StoreOption,
    YearOption,
)


def report(
    run_id: StoredRunArgument = None,
    store: StoreOption = DEFAULT_STORE,
    output: OutputOption = None,
    year: YearOption = None,
    table: GpuTableOption = None,
    include_invalid: IncludeInvalidOption = False,
    moderated: ModeratedOption = False,
    prices: PricesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a run's report: one HTML file that opens offline."""
    from runner.reporting.report_files import choose_output, fit_forecast, write_report
    from runner.reporting.stored_runs import load_collection, load_history, open_existing_store, print_skipped

    opened = open_existing_store(store)
    say(f"reading {run_id or 'the newest run'} from {store}, then drawing its figures")
    collection = load_collection(opened, run_id)
    directory = choose_output(output, collection.run)
    path = write_report(
        collection,
        directory,
        fit_forecast(year, table),
        include_invalid=include_invalid,
        moderated=moderated,
        history=load_history(opened, collection),
        prices=prices,
    )
    if as_json:
        print_files(collection.run.run_id, [path])
        return
    CONSOLE.print(str(path), soft_wrap=True)
    print_skipped(collection, CONSOLE)
    say_next(f"open {path} in a browser", f"benchmatrix compare RUN_A {collection.run.run_id}")
