"""The command `status`."""

import socket
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UserError
from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    JsonOption,
    NamespaceOption,
    StoredRunArgument,
    StoreOption,
    format_resumption,
    say_next,
)
from runner.terminal import echo, join_printable

if TYPE_CHECKING:  # a shell that completes options waits for what is imported here
    from bench.schema import Run
    from bench.store import Store
    from collector.results.collection import Collection
    from runner.commands.json_documents import StatusDocument


def is_going_on(collection: "Collection") -> bool | None:
    """Return whether a run's runner is at work on this machine; None: it runs elsewhere, and the store does not say."""
    from runner.local.process import find_measured_run

    run = collection.run
    if run.executor != "local" or run.hostname != socket.gethostname():
        return None
    return find_measured_run() == run.run_id


MISSING_WORDS = {None: "not there yet", False: "missing", True: "to go, running"}
"""What planned repeats without a result are, by whether their run goes on."""


def status(
    run_id: StoredRunArgument = None,
    store: StoreOption = DEFAULT_STORE,
    on: Annotated[
        str | None,
        typer.Option(
            "--on", metavar="CONTEXT", help="Ask the cluster of this context too: what runs, what waits, and why."
        ),
    ] = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the progress of a run: how many repeats have which status.

    Namespace and queue are those that the run recorded.
    """
    from collector.results.frames import MISSING
    from runner.stored_runs import load_collection, open_existing_store

    opened = open_existing_store(store)
    collection = load_collection(opened, run_id)
    counts = Counter(collection.results["status"])
    is_running = is_going_on(collection)
    if as_json:
        lines = None if on is None else _ask_cluster(collection.run, on, namespace, opened, counts[MISSING])
        echo(_make_document(collection, counts, lines, is_running).model_dump_json())
        return
    _print_collection(collection, counts, opened, is_running)
    if on is not None:
        for line in _ask_cluster(collection.run, on, namespace, opened, counts[MISSING]):
            CONSOLE.print(line, soft_wrap=True)
    if is_running and counts[MISSING]:
        return
    resumption = format_resumption(collection.run, store, on, namespace)
    _say_what_next(collection, counts[MISSING], store, resumption)


def _say_what_next(collection: "Collection", num_missing: int, store: str, resumption: str) -> None:
    report = f"benchmatrix report {collection.run.run_id} --store {store}"
    if num_missing:
        say_next(f"{resumption} measures what is missing")
    elif collection.num_contaminated:
        say_next(f"{resumption} --retry-contaminated measures again what others disturbed", report)
    else:
        say_next(report)


def _print_collection(collection: "Collection", counts: Counter[str], store: "Store", is_running: bool | None) -> None:
    from collector.facts import describe_node_faults
    from collector.results.frames import MISSING, UNREADABLE
    from runner.reporting import print_notices

    others = {status: number for status, number in counts.most_common() if status != MISSING}
    ended = [
        f"{number} {status}{_describe_verdicts(collection.count_verdicts()) if status == 'ok' else ''}"
        for status, number in others.items()
    ]
    states = ", ".join([*ended, *([f"{counts[MISSING]} {MISSING_WORDS[is_running]}"] if counts[MISSING] else [])])
    CONSOLE.print(f"{collection.run.run_id}: {len(collection.results)} repeats: {states}", soft_wrap=True)
    print_notices(store, collection, CONSOLE)
    if (collection.results["status"] == UNREADABLE).any():
        CONSOLE.print(
            "unreadable: the store has a record and does not give it; how it ended is not known", soft_wrap=True
        )
    for line in describe_node_faults(collection.node_faults):
        CONSOLE.print(f"node at fault: {join_printable(line)}", soft_wrap=True)


def _describe_verdicts(verdicts: Counter[str]) -> str:
    from collector.results.summary import OUTCOME_VERDICTS

    others = [
        f"{number} {verdict}{' and counted' if verdict in OUTCOME_VERDICTS else ''}"
        for verdict, number in verdicts.most_common()
        if verdict != "valid"
    ]
    parts = [f"{verdicts['valid'] or 'none'} valid", *others]
    return f" ({', '.join(parts)})" if others else ""


def _make_document(
    collection: "Collection", counts: Counter[str], cluster: list[str] | None, is_running: bool | None
) -> "StatusDocument":
    from collector.facts import describe_node_faults
    from collector.results.frames import MISSING
    from runner.commands.json_documents import NotCountedDocument, StatusDocument
    from runner.stored_runs import MAX_NAMED

    skipped = collection.skipped[:MAX_NAMED]
    return StatusDocument(
        run_id=collection.run.run_id,
        matrix=collection.run.matrix,
        num_repeats=dict(counts),
        is_running=is_running if counts[MISSING] else False,
        num_by_verdict=dict(collection.count_verdicts()),
        num_skipped_documents=len(collection.skipped),
        skipped_documents=tuple(NotCountedDocument(key=one.key, reason=one.reason) for one in skipped),
        node_faults=tuple(describe_node_faults(collection.node_faults)),
        cluster=None if cluster is None else tuple(cluster),
    )


def _ask_cluster(run: "Run", on: str, namespace: str | None, store: "Store", num_missing: int) -> list[str]:
    from runner.commands.cluster import LOOK_SECONDS
    from runner.kubernetes.cleanup import list_marks
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.login import find_context
    from runner.kubernetes.names import check_dns_label, check_option
    from runner.kubernetes.run import inspect_run

    if run.cluster is None:
        raise UserError(f"--on {on}: run {run.run_id} ran on the machine {run.hostname}, not on a cluster")
    connection = Connection(context=find_context(on), patience_seconds=LOOK_SECONDS)
    namespace = check_option("--namespace", namespace or run.cluster.namespace, check_dns_label)
    is_going_on, lines = inspect_run(connection, namespace, run.run_id, store.url, num_missing)
    if num_missing and not is_going_on and list_marks(store, run.run_id):
        lines.append(f"the run was cancelled: {num_missing} repeats stay missing until it is resumed")
    return lines
