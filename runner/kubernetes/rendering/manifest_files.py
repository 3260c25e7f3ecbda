"""Write the manifests of a run and of its set-up as YAML files that `kubectl apply -f` takes."""

import json
from collections.abc import Mapping
from pathlib import Path

from bench.errors import UserError
from bench.schema import Run
from collector.files import replace_text
from runner.kubernetes.fingerprint import compute_fingerprint
from runner.kubernetes.rendering.job_name import JobKey
from runner.kubernetes.rendering.job_template import JobRenderer
from runner.kubernetes.rendering.setup_template import SetupTemplate, dump_yaml
from runner.matrix.plan import order_repeats
from runner.profiles.model import Profile

SETUP_FOLDER = "setup"


def write_manifests(folder: Path, run: Run, profile: Profile, store_url: str, queue: str | None) -> None:
    """Write one file per Job into the folder, and the set-up into a folder below it.

    Raise UserError if the folder cannot be written to or holds other manifests.
    """
    files = _render_setup(profile) | _render_jobs(run, profile, store_url, queue)
    try:
        _check_no_others(folder, files)
        (folder / SETUP_FOLDER).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--manifests {folder}: {error.strerror or error}; name another folder") from error
    for name, text in files.items():
        replace_text(folder / name, text)


def _render_setup(profile: Profile) -> dict[str, str]:
    """Return the set-up by file; `kubectl apply` takes the files in the order of their names."""
    parts = SetupTemplate(profile=profile).render()
    return {
        f"{SETUP_FOLDER}/{number}-{name}.yaml": dump_yaml(manifests)
        for number, (name, manifests) in enumerate(parts.items(), start=1)
    }


def _render_jobs(run: Run, profile: Profile, store_url: str, queue: str | None) -> dict[str, str]:
    renderer = JobRenderer(profile=profile, store_url=store_url, git_revision=run.git_revision, queue=queue)
    fingerprint = compute_fingerprint(run, profile, store_url)
    files = {}
    for repeat in order_repeats(run.cells, run.order_seed):
        key = JobKey(
            run_id=run.run_id,
            cell_id=repeat.planned.cell.cell_id,
            number=repeat.number,
            retry_round=0,
            fingerprint=fingerprint,
        )
        files[f"{key.job_name}.yaml"] = dump_yaml([json.loads(renderer.render(repeat.planned, key))])
    return files


def _check_no_others(folder: Path, files: Mapping[str, str]) -> None:
    """Raise UserError if the folder holds other manifests, which `kubectl apply -f` would apply too."""
    found = (
        str(path.relative_to(folder))
        for pattern in ("*.yaml", f"{SETUP_FOLDER}/*.yaml")
        for path in folder.glob(pattern)
    )
    others = sorted(set(found) - set(files))
    if others:
        raise UserError(
            f"--manifests {folder}: holds other manifests, such as {others[0]}; remove them or name another folder"
        )
