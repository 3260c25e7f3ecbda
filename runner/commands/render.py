"""The command `render`."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UserError
from runner.commands.options import (
    JsonLinesOption,
    MachinesOption,
    MatrixArgument,
    NamespaceOption,
    PricesOption,
    ProfileOption,
    QueueOption,
    parse_machines,
    refuse_given,
)
from runner.profiles import BUCKET_URLS
from runner.terminal import echo

if TYPE_CHECKING:  # help and completion need no more than the options
    from bench.registry import Device
    from bench.schema import Run
    from runner.estimates import PoolPrice
    from runner.matrix import Matrix
    from runner.profiles.model import Profile

ANY_CLUSTER = "any"
OF_MANIFESTS = ("on", "profile", "namespace", "store", "queue", "run_id")

StoreOption = Annotated[str | None, typer.Option("--store", metavar="URL", help=f"With --manifests: {BUCKET_URLS}.")]
RunIdOption = Annotated[
    str | None,
    typer.Option(metavar="RUN_ID", help="With --manifests: the run that they belong to; default: the matrix's name."),
]


def render(
    context: typer.Context,
    matrix: MatrixArgument,
    earlier: Annotated[
        str | None,
        typer.Option(
            "--earlier", metavar="URL", help="A store whose earlier results of the same cells say how long they take."
        ),
    ] = None,
    machine: MachinesOption = None,
    prices: PricesOption = None,
    as_json: JsonLinesOption = False,
    manifests: Annotated[
        Path | None,
        typer.Option(
            "--manifests",
            metavar="FOLDER",
            help="Write Jobs and set-up into this folder, for `kubectl apply -f`.",
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option("--on", metavar="CONTEXT", help="With --manifests: the context whose name says which profile."),
    ] = None,
    profile: ProfileOption = None,
    namespace: NamespaceOption = None,
    store: StoreOption = None,
    queue: QueueOption = None,
    run_id: RunIdOption = None,
) -> None:
    """Print what the cells of MATRIX are and what they take, or write their manifests; measure nothing."""
    from runner.estimates import find_pool_prices
    from runner.matrix import load_matrix, plan_run

    loaded = load_matrix(matrix, is_data_here=manifests is None)
    machines = parse_machines(machine or [])
    find_pool_prices(None, machines, prices)  # before anything is printed: these may be wrong
    if manifests is None:
        refuse_given(context, OF_MANIFESTS, "is for --manifests FOLDER; add that, or leave this out")
        _print_cells(loaded, as_json=as_json)
        if not as_json:
            run = plan_run(loaded, lambda _: None, run_id=loaded.name)
            _print_estimate(run, earlier, find_pool_prices(None, machines, prices))
        return
    chosen = _choose_profile(on, profile, namespace)
    from runner.kubernetes.setup import write_manifests

    run = _plan(loaded, chosen, on or ANY_CLUSTER, queue, run_id)
    write_manifests(manifests, run, chosen, _check_store(store), queue)
    _print_plan(run, manifests)
    _print_estimate(run, earlier, find_pool_prices(chosen, machines, prices))


def _print_estimate(run: "Run", earlier: str | None, prices: "Mapping[Device, PoolPrice]") -> None:
    from runner.estimates import describe_estimates, estimate_repeats, read_durations
    from runner.matrix import order_repeats
    from runner.stored_runs import open_existing_store

    store = None if earlier is None else open_existing_store(earlier, "--earlier")
    durations = {} if store is None else read_durations(store, run, lambda _: True)
    for line in describe_estimates(estimate_repeats(order_repeats(run.cells, run.order_seed), durations, prices)):
        echo(line, err=True)


def _print_cells(loaded: "Matrix", *, as_json: bool) -> None:
    if as_json:
        for planned in loaded.cells:
            echo(planned.model_dump_json())
        return
    from collector.cell_words import name_cell
    from collector.units import count_things

    names = [name_cell(planned.cell) for planned in loaded.cells]
    width = max(map(len, names), default=0)
    for name, planned in zip(names, loaded.cells, strict=True):
        protocol = f"repeats={planned.repeats} timeout_seconds={planned.timeout_seconds:g}"
        echo(f"{name:<{width}}  {protocol}  {planned.cell.cell_id}")
    repeats = sum(planned.repeats for planned in loaded.cells)
    echo(f"{loaded.source}: {count_things(len(names), 'cell')}, {count_things(repeats, 'repeat')}", err=True)


def _print_plan(run: "Run", folder: Path) -> None:
    from runner.kubernetes.setup import SETUP_FOLDER
    from runner.runs import describe_left_out

    echo(f"{run.num_repeats} Jobs of run {run.run_id} in {folder}, set-up in {folder / SETUP_FOLDER}")
    for line in describe_left_out(run):
        echo(line)
    echo(f"to collect what they measure: benchmatrix run MATRIX --on CONTEXT --run-id {run.run_id}", err=True)


def _choose_profile(on: str | None, profile: str | None, namespace: str | None) -> "Profile":
    """Return the profile; read a kubeconfig only if the profile depends on the context."""
    from runner.profiles.loading import find_profile

    if profile is not None:
        found = find_profile(profile, "")
    elif on is not None:
        from runner.kubernetes.login import find_context

        found = find_profile(None, find_context(on))
    else:
        raise UserError("--manifests: needs to know the cluster; add --profile, or --on CONTEXT if its name says which")
    return found if namespace is None else found.in_namespace(namespace)


def _check_store(url: str | None) -> str:
    if url is None or not re.fullmatch(r"(s3|gs|az)://[A-Za-z0-9._-]+(/[^?#@]*)?", url):
        raise UserError(
            f"--store{'' if url is None else f' {url}'}: the Jobs need to know where their results go; "
            f"name a bucket, {BUCKET_URLS}"
        )
    return url


def _plan(matrix: "Matrix", profile: "Profile", context: str, queue: str | None, run_id: str | None) -> "Run":
    from bench.schema import Cluster
    from runner.matrix import plan_run
    from runner.runs import check_run_id

    name = matrix.name if run_id is None else run_id
    check_run_id(name)
    cluster = Cluster(context=context, namespace=profile.namespace, profile=profile.name, queue=queue)
    return plan_run(matrix, profile.explain_unsupported, run_id=name, cluster=cluster)
