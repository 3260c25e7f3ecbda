"""Jobs that are refused before anything is sent."""

from typing import Any

import pytest

from bench.errors import UserError
from bench.schema import Cell
from factories import make_cell
from job_manifests import load, make_key, make_renderer, plan
from runner.kubernetes.rendering import (
    JobOwner,
)
from runner.profiles.loading import load_profile
from runner.profiles.model import Profile


def catch_message(profile: Profile, cell: Cell | None = None, timeout_seconds: float = 600.0, **overrides: Any) -> str:
    cell = cell or make_cell()
    with pytest.raises(UserError) as caught:
        make_renderer(profile, **overrides).render(plan(cell, timeout_seconds=timeout_seconds), make_key(cell))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_profile_without_the_image_names_the_key() -> None:
    assert catch_message(load_profile("gke")).startswith("profile gke: images.pytorch.cpu: is missing; name the image")


def test_a_profile_without_the_pool_names_it() -> None:
    assert "profile kind: has no pool 'gpu'" in catch_message(load("kind"), make_cell(device="gpu"))


@pytest.mark.parametrize("seconds", [86_400.0, 3e9])
def test_a_cell_that_may_take_longer_than_its_job_is_refused(seconds: float) -> None:
    message = catch_message(load("kind"), timeout_seconds=seconds)
    assert message.startswith("profile kind: active_deadline_seconds: 86400 is less than the timeout_seconds of conv6-")


@pytest.mark.parametrize("queue", ["", "a b", "-a", "a\nb", "x" * 64, "A"])
def test_a_queue_that_no_label_can_name_is_refused(queue: str) -> None:
    assert catch_message(load("kind"), queue=queue).startswith("--queue: found ")


@pytest.mark.parametrize(
    "owner", ["", "sweep", "sweep/", "/x", "sweep/1", "Sweep/6f1c1a52-3b9b-4c7e-9a0e-5d1a52f7a6b1"]
)
def test_an_owner_that_is_no_job_is_refused(owner: str) -> None:
    with pytest.raises(UserError, match="^--owner"):
        JobOwner.parse(owner)


@pytest.mark.parametrize("store", ["s3://b/\0", "s3://b/\udc80", "s3://b/" + "x" * 40_000])
def test_a_store_that_no_variable_can_hold_is_refused(store: str) -> None:
    assert catch_message(load("kind"), store_url=store).startswith("--store: found 's3://b/")
