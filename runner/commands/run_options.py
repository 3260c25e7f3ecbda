"""The options of `run` alone."""

from pathlib import Path
from typing import Annotated

import typer

from runner.commands.completion import complete_context, complete_profile, complete_run_id
from runner.commands.options import NAMESPACE_HELP, PROFILE_HELP, QUEUE_HELP
from runner.durations import read_durations

CLUSTER_PANEL = "On a cluster"

OnOption = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="CONTEXT",
        help="Where the cells run: `local`, which is this machine, or a context of your kubeconfig (`current`).",
        autocompletion=complete_context,
    ),
]
RunIdOption = Annotated[
    str | None,
    typer.Option(
        "--run-id",
        metavar="RUN_ID",
        help="Name for a new run, or the name of the run to resume.",
        autocompletion=complete_run_id,
    ),
]
NewOption = Annotated[bool, typer.Option("--new", help="Start a new run even if one of this matrix is unfinished.")]
RetryOption = Annotated[bool, typer.Option("--retry-failed", help="Measure again what did not end well.")]
RetryContaminatedOption = Annotated[
    bool,
    typer.Option(
        "--retry-contaminated",
        help="Measure again, in the same run, what others disturbed (verdict `contaminated`), whatever time it took.",
    ),
]
ClusterProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="PROFILE",
        help=PROFILE_HELP,
        rich_help_panel=CLUSTER_PANEL,
        autocompletion=complete_profile,
    ),
]
ClusterNamespaceOption = Annotated[
    str | None, typer.Option("--namespace", metavar="NAME", help=NAMESPACE_HELP, rich_help_panel=CLUSTER_PANEL)
]
ClusterQueueOption = Annotated[
    str | None, typer.Option("--queue", metavar="NAME", help=QUEUE_HELP, rich_help_panel=CLUSTER_PANEL)
]
MaxInFlightOption = Annotated[
    int,
    typer.Option(
        min=1,
        max=100_000,
        metavar="NUMBER",
        help="Jobs that exist at once and are unfinished.",
        rich_help_panel=CLUSTER_PANEL,
    ),
]
MaxNodesOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=100_000,
        metavar="NUMBER",
        help="Nodes that the run may take at once: each unfinished Job counts as one.",
        rich_help_panel=CLUSTER_PANEL,
    ),
]
MaxCostOption = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="AMOUNT",
        help="End the run when its estimated cost reaches this amount, in the currency of the prices: `price_per_hour` "
        "of the profile's pools, or those of --machine.",
    ),
]
GiveUpOption = Annotated[
    float | None,
    typer.Option(
        "--give-up-after",
        parser=read_durations("--give-up-after", least="1s"),
        metavar="TIME",
        help="How long a pod may wait for a node while no pod of its pool runs; default: 15m, and with --deadline "
        "until then.",
        rich_help_panel=CLUSTER_PANEL,
    ),
]
MetricsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=65_535,
        metavar="PORT",
        help="Serve the runner's Prometheus metrics on this port.",
        rich_help_panel=CLUSTER_PANEL,
    ),
]
DeadlineOption = Annotated[
    float | None,
    typer.Option(
        "--deadline",
        parser=read_durations("--deadline", least="1s"),
        metavar="TIME",
        help="Time after the beginning of the run, such as 8h, when no further repeat begins, and unfinished Jobs are "
        "deleted.",
    ),
]
OwnerOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME/UID",
        help="The Job of the runner itself, in the cells' namespace; the run's Jobs are deleted with it.",
        rich_help_panel=CLUSTER_PANEL,
    ),
]
SignOption = Annotated[
    Path | None,
    typer.Option(
        "--sign",
        metavar="FILE",
        help="Sign plan and results with this secret key, which `benchmatrix keys new` makes. On a cluster, cells sign "
        "with that of the Secret `signing_secret` of the profile.",
    ),
]
DryRunOption = Annotated[
    bool,
    typer.Option("--dry-run", help="Say how many node-hours and what price the run will take; measure nothing."),
]
ReportOption = Annotated[bool, typer.Option(help="Collect and report at the end.")]
PublishOption = Annotated[
    bool,
    typer.Option("--publish", help="Put the report into the store too: runs/RUN_ID/report.html and latest/."),
]
WatchOption = Annotated[
    bool,
    typer.Option(
        "--watch",
        help="Then look at the runs of this matrix as nights, measure again what is suspected, and report what is "
        "confirmed; see docs/nights.md.",
    ),
]
WebhookOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND:VARIABLE",
        help="Send confirmed regressions to the URL in this environment variable, as `json:VARIABLE` or "
        "`slack:VARIABLE`. It can be given several times.",
    ),
]
