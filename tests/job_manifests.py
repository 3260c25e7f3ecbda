"""Profiles, planned cells and renderers of tests, and the Jobs that they give."""

import json
from typing import Any

import kubernetes_validate

from bench.registry import FRAMEWORKS
from bench.schema import Cell, PlannedCell
from factories import make_cell
from runner.kubernetes.names import JobKey
from runner.kubernetes.rendering import JobRenderer
from runner.profiles import BUILTIN_PROFILES
from runner.profiles.loading import load_profile
from runner.profiles.model import Gpus, NodeRequirement, Pool, Profile, Toleration, Volume

OWNER = "sweep-1/6f1c1a52-3b9b-4c7e-9a0e-5d1a52f7a6b1"
KUBERNETES_VERSION = "1.36"
RUN_ID, STORE = "mine-1", "s3://bucket/prefix"
IMAGE = "registry.example/benchmatrix:1"
IMAGES: Any = {name: {"cpu": IMAGE, "gpu": IMAGE} for name in FRAMEWORKS}
POD = "spec.template.spec"
CONTAINER = f"{POD}.containers.0"
SLOTS = {
    "job_name": "name",
    "run_id": RUN_ID,
    "cell_id": "cell-12345678",
    "repeat": "1",
    "fingerprint": "",
    "cell_json": "{}",
}
KINDS = [
    (name, device)
    for name in BUILTIN_PROFILES
    for device in ("cpu", "gpu")
    if device == "cpu" or load_profile(name).gpu is not None
]
"""Every built-in profile with every device that it has nodes for."""


def make_full_profile() -> Profile:
    """Return a profile in which every key that reaches a Job has a value."""
    pool = Pool(
        node_selector={"zone": "a"},
        node_affinity=((NodeRequirement(key="kind", operator="In", values=("fast",)),),),
        tolerations=(Toleration(key="taken", operator="Equal", value="yes", effect="NoSchedule"),),
        node_requirements=(NodeRequirement(key="taken", operator="DoesNotExist"),),
        runtime_class_name="nvidia",
        cpus=2,
        memory="4Gi",
    )
    return Profile(
        name="full",
        namespace="space",
        labels={"team": "a"},
        annotations={"note": "b"},
        service_account="account",
        pools={"cpu": pool, "gpu": pool},
        gpu=Gpus(name="Tesla T4", compute_capability=(7, 5), max_per_node=4),
        images=IMAGES,
        image_pull_secrets=("pull",),
        store_secret="keys",
        environment={"MINE": "value"},
        data=Volume(claim="claim", mount_path="/data"),
        compile_cache=Volume(claim="kernels", mount_path="/kernels"),
        priority_class="class",
    )


def plan(cell: Cell, **overrides: Any) -> PlannedCell:
    fields: dict[str, Any] = {"cell": cell, "repeats": 1, "timeout_seconds": 600.0}
    return PlannedCell(**(fields | overrides))


def make_renderer(profile: Profile, **overrides: Any) -> JobRenderer:
    fields: dict[str, Any] = {"profile": profile, "store_url": STORE, "git_revision": "abc"}
    return JobRenderer(**(fields | overrides))


def collect_full_values() -> dict[str, object]:
    """Return what the template of a Job takes where everything is asked for."""
    renderer = make_renderer(make_full_profile(), queue="team", owner=OWNER)
    return renderer.collect_values(plan(make_cell()))


def make_key(cell: Cell) -> JobKey:
    return JobKey(run_id=RUN_ID, cell_id=cell.cell_id, number=1, retry_round=0)


def render(profile: Profile, cell: Cell | None = None, **overrides: Any) -> dict[str, Any]:
    """Return a Job, which Kubernetes' schema knows."""
    cell = cell or make_cell()
    manifest: dict[str, Any] = json.loads(make_renderer(profile, **overrides).render(plan(cell), make_key(cell)))
    kubernetes_validate.validate(manifest, KUBERNETES_VERSION, strict=True)
    return manifest


def load(name: str, **overrides: Any) -> Profile:
    """Return a built-in profile with an image for every framework."""
    assert overrides.keys() <= Profile.model_fields.keys()  # model_copy takes any key
    return load_profile(name).model_copy(update={"images": IMAGES, **overrides})
