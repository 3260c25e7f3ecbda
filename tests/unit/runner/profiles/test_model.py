"""What a profile says of cells: whether it can run them, and on which GPUs."""

import json
from typing import Any

import pytest

from bench.errors import UserError
from factories import make_cell
from runner.profiles.loading import load_profile
from runner.profiles.model import Profile

LEAST = {"pools": {"cpu": {"cpus": 1, "memory": "1Gi"}}}


def test_a_namespace_of_the_command_line_is_checked() -> None:
    profile = load_profile("kind")
    assert profile.in_namespace("team-a").namespace == "team-a"
    for name in ("../kube-system", "a/b", "", "A", "a\n", "x" * 64):
        with pytest.raises(UserError, match=r"^--namespace: found .* expected a name of a-z"):
            profile.in_namespace(name)


def make(**keys: Any) -> Profile:
    return Profile.model_validate_json(json.dumps({"name": "mine", **LEAST, **keys}))


def test_a_cell_needs_its_pool_and_its_data() -> None:
    data = {"claim": "data", "mount_path": "/data"}
    assert make().explain_unsupported(make_cell(device="gpu")) == "the profile mine has no pool 'gpu'"
    assert (
        make().explain_unsupported(make_cell(data_dir="/data/x")) == "data_dir: the profile mine has no `data` volume"
    )
    assert make(data=data).explain_unsupported(make_cell(data_dir="/data/x")) is None
    reason = make(data=data).explain_unsupported(make_cell(data_dir="/database"))
    assert reason == "data_dir: /database is not in /data, the data of the profile mine"


def test_a_folder_that_leaves_the_volume_is_not_in_it() -> None:
    profile = make(data={"claim": "data", "mount_path": "/data"})
    assert profile.explain_unsupported(make_cell(data_dir="/data/../etc")) is not None


def test_the_gpus_are_those_of_the_profile() -> None:
    kind = load_profile("gke").gpu_kind
    assert kind is not None
    assert (kind.name, kind.compute_capability, kind.num_gpus) == ("Tesla T4", (7, 5), 4)
    assert load_profile("kind").gpu_kind is None


def test_compiled_pytorch_runs_unless_the_images_have_no_compiler() -> None:
    for device in ("cpu", "gpu"):
        cell = make_cell(mode="compiled", device=device)
        assert load_profile("gke").explain_unsupported(cell) is None
    reason = make(has_compiler=False).explain_unsupported(make_cell(mode="compiled"))
    assert reason == "compiled PyTorch needs a compiler, and the images have none (has_compiler of the profile)"
    assert make(has_compiler=False).explain_unsupported(make_cell(framework="jax", mode="compiled")) is None


def test_a_compile_cache_is_no_folder_of_the_data() -> None:
    with pytest.raises(ValueError, match="compile_cache.mount_path: /data is the folder of `data`; take another one"):
        make(data={"claim": "data", "mount_path": "/data"}, compile_cache={"claim": "c", "mount_path": "/data"})
