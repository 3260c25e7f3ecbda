"""The command `answers`."""

from typing import TYPE_CHECKING

from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    IncludeInvalidOption,
    JsonOption,
    ModeratedOption,
    PricesOption,
    StoredRunArgument,
    StoreOption,
    VerifyOption,
    make_error_console,
)
from runner.terminal_text import echo

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.answers.answer import Answer


def answers(
    run_id: StoredRunArgument = None,
    store: StoreOption = DEFAULT_STORE,
    verify: VerifyOption = None,
    include_invalid: IncludeInvalidOption = False,
    moderated: ModeratedOption = False,
    prices: PricesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a run found, in sentences with their intervals, and what it leaves open.

    docs/report.md has the rule of each sentence.
    """
    from collector.analysis import analyze_run
    from collector.answers.document import make_answers_document
    from collector.answers.measured import describe_measured
    from collector.answers.run_answers import answer_run
    from runner.price_tables.loading import load_prices
    from runner.reporting.stored_runs import load_collection, load_history, open_existing_store, print_skipped

    opened = open_existing_store(store, verify=verify)
    collection = load_collection(opened, run_id)
    analysis = analyze_run(
        collection,
        include_invalid=include_invalid,
        moderated=moderated,
        history=load_history(opened, collection),
        prices=load_prices(prices),
    )
    found = answer_run(analysis)
    print_skipped(collection, make_error_console())
    if as_json:
        echo(make_answers_document(collection.run.run_id, found, measured=describe_measured(analysis)).to_json())
    else:
        _print(found, describe_measured(analysis))


def _print(found: "list[Answer]", measured: str) -> None:
    from collector.answers.texts import list_lines

    for line in list_lines(found, measured=measured):
        CONSOLE.print(line, soft_wrap=True)
