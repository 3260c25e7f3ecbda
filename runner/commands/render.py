"""`benchmatrix render`: a matrix in, its cells printed, or the manifests of its Jobs and of their set-up written."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from bench.capabilities import explain_refusal
from bench.errors import UserError
from bench.schema import Cell, Cluster, Run
from runner.commands.options import MatrixArgument, NamespaceOption, ProfileOption, QueueOption
from runner.kubernetes.rendering.job_name import JobKey
from runner.kubernetes.rendering.job_template import JobRenderer
from runner.kubernetes.rendering.setup_template import SetupTemplate, dump_yaml
from runner.kubernetes.syntax import check_option, check_queue
from runner.matrix.expansion import Matrix, load_matrix
from runner.matrix.plan import check_run_id, order_repeats, plan_run
from runner.profiles.model import Profile, find_profile

ANY_CLUSTER = "any"
SETUP_FOLDER = "setup"


def render(
    matrix: MatrixArgument,
    as_json: Annotated[
        bool, typer.Option("--json", help="Every field of every cell: one JSON document per line.")
    ] = False,
    manifests: Annotated[
        Path | None, typer.Option("--manifests", help="Write the Jobs and the set-up as YAML into this folder.")
    ] = None,
    on: Annotated[
        str | None, typer.Option("--on", help="With --manifests: the context that tells the profile.")
    ] = None,
    profile: ProfileOption = None,
    namespace: NamespaceOption = None,
    store: Annotated[str | None, typer.Option("--store", help="With --manifests: s3://BUCKET/PREFIX.")] = None,
    queue: QueueOption = None,
    run_id: Annotated[
        str | None, typer.Option(help="With --manifests: the run that they belong to; default: the matrix's name.")
    ] = None,
) -> None:
    """Print the cells of MATRIX, or write their manifests; measure nothing."""
    loaded = load_matrix(matrix)
    if manifests is not None:
        chosen = _choose_profile(on, profile, namespace)
        if queue is not None:
            check_option("--queue", queue, check_queue)
        run = _plan(loaded, chosen, on or ANY_CLUSTER, queue, run_id)
        _write_manifests(manifests, run, chosen, _check_store(store), queue)
        return
    _refuse_options(on=on, profile=profile, namespace=namespace, store=store, queue=queue, run_id=run_id)
    _print_cells(loaded, as_json=as_json)


def _refuse_options(**options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise UserError(f"--{name.replace('_', '-')}: is for --manifests DIR; add that, or leave this out")


def _print_cells(loaded: Matrix, *, as_json: bool) -> None:
    if as_json:
        for planned in loaded.cells:
            typer.echo(planned.model_dump_json())
        return
    for planned in loaded.cells:
        typer.echo(f"{planned.cell.cell_id}  repeats={planned.repeats} timeout_seconds={planned.timeout_seconds:g}")
    repeats = sum(planned.repeats for planned in loaded.cells)
    typer.echo(f"{loaded.source}: {len(loaded.cells)} cells, {repeats} repeats", err=True)


def _choose_profile(on: str | None, profile: str | None, namespace: str | None) -> Profile:
    """Return the profile; a kubeconfig is only read where the context must tell it."""
    if profile is not None:
        found = find_profile(profile, "")
    elif on is not None:
        from runner.kubernetes.login import find_context

        found = find_profile(None, find_context(on))
    else:
        raise UserError("--manifests: needs to know the cluster; add --profile, or --on CONTEXT where that tells it")
    return found if namespace is None else found.in_namespace(namespace)


def _check_store(url: str | None) -> str:
    if url is None or not re.fullmatch(r"(s3|gs|az)://[A-Za-z0-9._-]+(/[^?#@]*)?", url):
        raise UserError(
            f"--store{'' if url is None else f' {url}'}: the Jobs need to know where their results go; "
            "name a bucket, s3://BUCKET/PREFIX"
        )
    return url


def _plan(matrix: Matrix, profile: Profile, context: str, queue: str | None, run_id: str | None) -> Run:
    name = matrix.name if run_id is None else run_id
    check_run_id(name)

    def find_obstacle(cell: Cell) -> str | None:
        return profile.find_obstacle(cell) or explain_refusal(cell, profile.gpu_kind)

    cluster = Cluster(context=context, namespace=profile.namespace, profile=profile.name, queue=queue)
    return plan_run(matrix, find_obstacle, run_id=name, cluster=cluster)


def _write_manifests(folder: Path, run: Run, profile: Profile, store_url: str, queue: str | None) -> None:
    files = _render_setup(profile) | _render_jobs(run, profile, store_url, queue)
    try:
        _refuse_others(folder, files)
        (folder / SETUP_FOLDER).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
    except OSError as error:
        raise UserError(f"--manifests {folder}: {error.strerror or error}; name another folder") from error
    typer.echo(f"{run.num_repeats} Jobs of run {run.run_id} in {folder}, set-up in {folder / SETUP_FOLDER}")
    for reason in sorted({cell.reason for cell in run.left_out}):
        typer.echo(f"left out: {sum(cell.reason == reason for cell in run.left_out)} cells: {reason}")
    typer.echo(f"to collect what they measure: benchmatrix run MATRIX --on CONTEXT --run-id {run.run_id}", err=True)


def _render_setup(profile: Profile) -> dict[str, str]:
    """Return the set-up by file; `kubectl apply` takes the files in the order of their names."""
    parts = SetupTemplate(profile=profile).render()
    return {
        f"{SETUP_FOLDER}/{number}-{name}.yaml": dump_yaml(manifests)
        for number, (name, manifests) in enumerate(parts.items(), start=1)
    }


def _render_jobs(run: Run, profile: Profile, store_url: str, queue: str | None) -> dict[str, str]:
    """Return the Jobs by file."""
    renderer = JobRenderer(profile=profile, store_url=store_url, git_revision=run.git_revision, queue=queue)
    files = {}
    for repeat in order_repeats(run.cells):
        key = JobKey(run_id=run.run_id, cell_id=repeat.planned.cell.cell_id, number=repeat.number, retry_round=0)
        files[f"{key.job_name}.yaml"] = dump_yaml([json.loads(renderer.render(repeat.planned, key))])
    return files


def _refuse_others(folder: Path, files: Mapping[str, str]) -> None:
    """Raise UserError where the folder holds other manifests, which `kubectl apply -f` would take along."""
    found = (
        str(path.relative_to(folder))
        for pattern in ("*.yaml", f"{SETUP_FOLDER}/*.yaml")
        for path in folder.glob(pattern)
    )
    others = sorted(set(found) - set(files))
    if others:
        raise UserError(
            f"--manifests {folder}: holds other manifests, {others[0]} for one; remove them or name another folder"
        )
