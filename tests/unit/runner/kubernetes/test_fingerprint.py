"""The fingerprint of a run: it changes with what a Job measures for and with, and with nothing else."""

import re
from typing import Any

import pytest

from bench.schema import Run
from factories import make_cell, make_run
from job_manifests import IMAGES, STORE, load
from runner.kubernetes.rendering import compute_fingerprint
from runner.profiles.model import Profile

CELLS = [make_cell(seed=1), make_cell(seed=2)]


def compute(cells: Any = CELLS, repeats: int = 3, store_url: str = STORE, **changes: Any) -> str:
    """Return the fingerprint of a run on the cluster of the profile `kind`, with `changes` to that."""
    return compute_fingerprint(make_run(cells=cells, repeats=repeats), load("kind", **changes), store_url)


def change_cpus() -> Any:
    pool = load("kind").pools["cpu"]
    return {"cpu": pool.model_copy(update={"cpus": pool.cpus + 1})}


def test_it_is_a_label_of_twelve_digits_and_the_same_on_every_machine() -> None:
    assert re.fullmatch("[0-9a-f]{12}", compute())
    assert compute() == compute()


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
