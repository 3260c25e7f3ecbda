"""Names and labels of Jobs, and the fingerprint of a run."""

import re
from typing import Any

import pytest

from bench.schema import Run
from factories import make_cell, make_run
from job_manifests import IMAGES, STORE, load
from runner.kubernetes.names import JobKey
from runner.kubernetes.rendering import compute_fingerprint
from runner.profiles.model import Profile


@pytest.mark.parametrize(
    ("cell_id", "name"),
    [
        # printf of the five parts, a line each, through sha256sum
        ("conv6-pytorch-cpu-train-fp32-eager-b64-7890d9fa", "conv6-pytorch-cpu-train-fp32-eager-b64-321952e175da"),
        (f"{'a' * 39}-b-7890d9fa", f"{'a' * 39}-a8060cba79a7"),
        ("-7890d9fa", "cell-3571a92238fb"),
    ],
)
def test_a_name_is_the_same_on_every_machine_and_leaves_room_for_the_names_of_pods(cell_id: str, name: str) -> None:
    key = JobKey(run_id="smoke-1", cell_id=cell_id, number=2, retry_round=0, fingerprint="0123456789ab")
    assert key.job_name == name
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?", name)


CELLS = [make_cell(seed=1), make_cell(seed=2)]


def compute(cells: Any = CELLS, repeats: int = 3, store_url: str = STORE, **changes: Any) -> str:
    """Return the fingerprint of a run on the cluster of the profile `kind`, with `changes` to that."""
    return compute_fingerprint(make_run(cells=cells, repeats=repeats), load("kind", **changes), store_url)


def change_cpus() -> Any:
    pool = load("kind").pools["cpu"]
    return {"cpu": pool.model_copy(update={"cpus": pool.cpus + 1})}


@pytest.mark.parametrize(
    "changes",
    [
        {"store_url": f"{STORE}-of-others"},
        {"repeats": 4},
        {"cells": CELLS[:1]},
        {"images": IMAGES | {"pytorch": {"cpu": "registry.example/benchmatrix:2"}}},
        {"environment": {"AWS_ENDPOINT_URL": "http://elsewhere:9000"}},
        {"store_secret": "of-others"},
        {"pools": change_cpus()},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_decides_on_a_result_or_its_place_changes_it(changes: dict[str, Any]) -> None:
    assert re.fullmatch("[0-9a-f]{12}", compute())
    assert compute(**changes) != compute()


@pytest.mark.parametrize(
    "changes",
    [
        {"cells": CELLS[::-1]},
        {"store_url": f"{STORE}/"},
        {"namespace": "elsewhere"},
        {"labels": {"team": "a"}},
        {"start_seconds": 1},
        {"ttl_seconds_after_finished": 60},
        {"images": IMAGES | {"tensorflow": {"cpu": "registry.example/benchmatrix:2"}}},  # no cell of the run has it
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_run_may_go_on_with_another_value_of_anything_else(changes: dict[str, Any]) -> None:
    assert compute(**changes) == compute()


def test_a_runner_that_comes_back_with_the_stored_plan_finds_its_jobs() -> None:
    run, profile = make_run(cells=CELLS), load("kind")
    again, same_profile = Run.model_validate_json(run.to_json()), Profile.model_validate(profile.model_dump())
    assert compute_fingerprint(again, same_profile, STORE) == compute_fingerprint(run, profile, STORE)
