"""The command `report`."""

from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    GpuTableOption,
    IncludeInvalidOption,
    ModeratedOption,
    PricesOption,
    ReportOutputOption,
    StoredRunArgument,
    StoreOption,
    YearOption,
)
from runner.reporting.report_files import choose_report_path, fit_forecast, write_report
from runner.reporting.stored_runs import load_collection, load_history, open_existing_store, print_skipped


def report(
    run_id: StoredRunArgument = "",
    store: StoreOption = DEFAULT_STORE,
    output: ReportOutputOption = None,
    year: YearOption = None,
    table: GpuTableOption = None,
    include_invalid: IncludeInvalidOption = False,
    moderated: ModeratedOption = False,
    prices: PricesOption = None,
) -> None:
    """Write a run's report: one HTML file that opens offline."""
    opened = open_existing_store(store)
    collection = load_collection(opened, run_id)
    path = write_report(
        collection,
        choose_report_path(output, collection.run),
        fit_forecast(year, table),
        include_invalid=include_invalid,
        moderated=moderated,
        history=load_history(opened, collection),
        prices=prices,
    )
    CONSOLE.print(str(path), soft_wrap=True)
    print_skipped(collection, CONSOLE)
