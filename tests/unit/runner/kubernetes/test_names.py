"""Names and labels of Jobs, and the fingerprint of a run."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.schema import Run
from factories import make_cell, make_run
from job_manifests import IMAGES, STORE, load
from runner.kubernetes.names import JobKey, select_run
from runner.kubernetes.rendering import compute_fingerprint
from runner.profiles.model import Profile

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)
CELL_IDS = st.from_regex(r"[a-z0-9-]{1,54}-[0-9a-f]{8}", fullmatch=True)
KEYS = st.builds(
    JobKey,
    run_id=NAMES,
    cell_id=CELL_IDS,
    number=st.integers(min_value=1, max_value=10**9),
    retry_round=st.integers(min_value=0, max_value=10**6),
    fingerprint=st.from_regex(r"[0-9a-f]{12}", fullmatch=True),
)
DNS_1123 = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


@settings(max_examples=500)
@given(KEYS)
def test_a_job_has_a_name_that_leaves_room_for_its_pods(key: JobKey) -> None:
    assert DNS_1123.fullmatch(key.job_name)
    assert len(key.job_name) <= 53


def test_a_name_is_the_same_on_every_machine() -> None:
    # printf of the five parts, a line each, through sha256sum
    key = JobKey(
        run_id="smoke-1",
        cell_id="conv6-pytorch-cpu-train-fp32-eager-b64-7890d9fa",
        number=2,
        retry_round=0,
        fingerprint="0123456789ab",
    )
    assert key.job_name == "conv6-pytorch-cpu-train-fp32-eager-b64-321952e175da"


def test_a_selector_takes_the_jobs_of_one_run_alone() -> None:
    assert (
        select_run("mine-1")
        == "app.kubernetes.io/name=benchmatrix,app.kubernetes.io/component=cell,benchmatrix/run-id=mine-1"
    )
    assert (
        select_run("mine-1", fingerprint="0123456789ab")
        == f"{select_run('mine-1')},benchmatrix/fingerprint=0123456789ab"
    )


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
