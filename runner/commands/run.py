"""The command `run`: its options; `run_execution` does what they ask for."""

import inspect
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

import typer

from runner.commands.options import (
    DEFAULT_STORE,
    LOCAL,
    JsonLinesOption,
    MachinesOption,
    MatrixArgument,
    NamespaceOption,
    OutputOption,
    PricesOption,
    ProfileOption,
    PythonOption,
    QueueOption,
    StoreOption,
    WebhookOption,
    complete_run_id,
    read_durations,
)

OF_CLUSTERS = ("profile", "namespace", "queue", "max_in_flight", "give_up_after", "metrics_port", "owner")
"""Fields of RunOptions that say nothing of a run on this machine."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the options of `run` ask for: each field is an option, or the argument."""

    matrix: MatrixArgument
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="CONTEXT",
            help="Where the cells run: `local`, which is this machine, or a context of your kubeconfig (`current`).",
        ),
    ] = LOCAL
    store: StoreOption = DEFAULT_STORE
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run-id",
            metavar="RUN_ID",
            help="Name for a new run, or the name of the run to resume.",
            autocompletion=complete_run_id,
        ),
    ] = None
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say how many node-hours and what price the run will take; measure nothing."),
    ] = False
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Measure again what did not end well.")] = False
    retry_contaminated: Annotated[
        bool,
        typer.Option(
            "--retry-contaminated",
            help="Measure again, in the same run, what others disturbed (verdict `contaminated`), however "
            "long it took.",
        ),
    ] = False
    max_cost: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="AMOUNT",
            help="End the run when its estimated cost reaches this amount, in the currency of the prices: "
            "`price_per_hour` of the profile's pools, or those of --machine.",
        ),
    ] = None
    deadline: Annotated[
        float | None,
        typer.Option(
            "--deadline",
            parser=read_durations("--deadline", least="1s"),
            metavar="TIME",
            help="Time after the beginning of the run, such as 8h, when no further repeat begins, and unfinished Jobs "
            "are deleted.",
        ),
    ] = None
    python: PythonOption = None
    output: OutputOption = None
    as_json: JsonLinesOption = False
    new: Annotated[bool, typer.Option("--new", help="Start a new run even if one is unfinished.")] = False
    report: Annotated[bool, typer.Option(help="Collect and report at the end.")] = True
    publish: Annotated[
        bool,
        typer.Option("--publish", help="Put the report into the store too: runs/RUN_ID/report.html and latest/."),
    ] = False
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Then look at the runs of this matrix as nights, measure again what is suspected, and report what is "
            "confirmed; see docs/nights.md.",
        ),
    ] = False
    webhook: WebhookOption = None
    machine: MachinesOption = None
    prices: PricesOption = None
    profile: ProfileOption = None
    namespace: NamespaceOption = None
    queue: QueueOption = None
    max_in_flight: Annotated[
        int,
        typer.Option(
            min=1,
            max=100_000,
            metavar="NUMBER",
            help="Jobs that exist at once and are unfinished, so the most nodes that the run takes.",
        ),
    ] = 200
    give_up_after: Annotated[
        float | None,
        typer.Option(
            "--give-up-after",
            parser=read_durations("--give-up-after", least="1s"),
            metavar="TIME",
            help="How long a pod may wait for a node while no pod of its pool runs; default: 15m, and with --deadline "
            "until then.",
        ),
    ] = None
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65_535,
            metavar="PORT",
            help="Serve the runner's Prometheus metrics on this port.",
        ),
    ] = None
    owner: Annotated[
        str | None,
        typer.Option(
            metavar="NAME/UID",
            help="The Job of the runner itself, in the cells' namespace; the run's Jobs are deleted with it.",
        ),
    ] = None


def run(**given: Any) -> None:
    """Measure MATRIX, or what is missing of its unfinished run, then collect and report."""
    from runner.commands.run_execution import execute_run

    execute_run(RunOptions(**given))


# Typer makes the options of these.
vars(run)["__signature__"] = inspect.signature(RunOptions)
run.__annotations__ = get_type_hints(RunOptions, include_extras=True)
