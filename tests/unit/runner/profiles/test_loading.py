"""Which profile a name or a context means, and how one extends another."""

from pathlib import Path

import pytest

from bench.errors import UserError
from bench.measure.roofline import read_gpu_table
from factories import make_cell
from profile_files import list_gpu_words, write
from runner.profiles import BUILTIN_PROFILES
from runner.profiles.loading import find_profile, load_profile


@pytest.mark.parametrize("name", BUILTIN_PROFILES)
def test_a_built_in_profile_is_valid_and_has_its_name(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.explain_unsupported(make_cell()) is None


@pytest.mark.parametrize(
    ("context", "name"),
    [
        ("gke_project_us-central1-a_bench", "gke"),
        ("arn:aws:eks:us-east-1:123456789012:cluster/bench", "eks"),
        ("arn:aws-cn:eks:cn-north-1:123456789012:cluster/bench", "eks"),
        ("ada@bench.us-east-1.eksctl.io", "eks"),
        ("kind-bench", "kind"),
        ("k3d-bench", "k3s"),
    ],
)
def test_a_context_indicates_its_profile(context: str, name: str) -> None:
    assert find_profile(None, context).name == name


def test_a_context_that_indicates_nothing_needs_a_profile() -> None:
    with pytest.raises(UserError, match=r"context minikube: .* add --profile aks, .*, openshift or the path of yours"):
        find_profile(None, "minikube")


# extends


def test_a_profile_has_what_it_says_and_the_rest_of_the_one_it_extends(tmp_path: Path) -> None:
    profile = load_profile(write(tmp_path, "extends: gke\npools: {gpu: {cpus: 7}}\nenvironment: {A: b}\n"))
    base = load_profile("gke")
    assert profile.pools["gpu"] == base.pools["gpu"].model_copy(update={"cpus": 7})
    assert profile == base.model_copy(
        update={"name": "mine", "environment": {"A": "b"}, "pools": base.pools | {"gpu": profile.pools["gpu"]}}
    )


def test_lists_are_replaced_whole(tmp_path: Path) -> None:
    profile = load_profile(write(tmp_path, "extends: gke\npools: {gpu: {tolerations: []}}\n"))
    assert profile.pools["gpu"].tolerations == ()


def test_profiles_extend_one_another_from_their_own_folders(tmp_path: Path) -> None:
    write(tmp_path, "extends: base.yaml\nstart_seconds: 1\n", "teams/a/mine.yaml")
    write(
        tmp_path, "extends: ../all.yaml\nstart_seconds: 2\ntermination_grace_period_seconds: 2\n", "teams/a/base.yaml"
    )
    write(tmp_path, "extends: kind\ntermination_grace_period_seconds: 3\ntmp_size: 3Gi\n", "teams/all.yaml")
    profile = load_profile(str(tmp_path / "teams/a/mine.yaml"))
    assert (profile.start_seconds, profile.termination_grace_period_seconds, profile.tmp_size) == (1, 2, "3Gi")
    assert profile.name == "mine"


def test_null_removes_what_the_other_says(tmp_path: Path) -> None:
    write(tmp_path, "extends: gke\nstore_secret: s\ndo_not_disrupt: false\nenvironment: {A: a, B: b}\n", "base.yaml")
    own = (
        "extends: base.yaml\nstore_secret: null\ndo_not_disrupt: ~\nenvironment: {A: null}\npools: {gpu: null}\ngpu:\n"
    )
    profile = load_profile(write(tmp_path, own))
    assert (profile.store_secret, profile.do_not_disrupt, profile.environment) == (None, True, {"B": "b"})
    assert (set(profile.pools), profile.gpu) == ({"cpu"}, None)


@pytest.mark.parametrize("name", ["gkee", "", "GKE"])
def test_a_name_of_no_profile_gets_the_nearest(name: str) -> None:
    with pytest.raises(UserError, match=rf"^--profile {name}: is none; .*, or give the path of a \.yaml file$"):
        load_profile(name)


# One word for a GPU

CAPABILITIES = {"T4": (7, 5), "L4": (8, 9), "A10G": (8, 6), "A100": (8, 0), "H100": (9, 0)}
"""https://developer.nvidia.com/cuda-gpus"""


@pytest.mark.parametrize(("name", "word"), [(name, word) for name in BUILTIN_PROFILES for word in list_gpu_words(name)])
def test_one_word_sets_what_the_gpu_is_and_where_it_is(tmp_path: Path, name: str, word: str) -> None:
    profile = load_profile(write(tmp_path, f"extends: {name}\ngpu: {word}\n"))
    assert profile == load_profile(write(tmp_path, f"extends: {name}\ngpu: {{name: {word}}}\n"))
    assert profile.gpu is not None
    assert word in profile.gpu.name
    known = {found for row in read_gpu_table() for found in row.names}
    assert profile.gpu.name in known or name in ("k3s", "openshift")  # these have several kinds of A100
    assert profile.gpu.compute_capability == CAPABILITIES[word]
    pool = profile.pools["gpu"]
    assert pool.cpus % 2 == 0
    assert pool.node_selector or pool.node_affinity
    assert {toleration.key for toleration in pool.tolerations} >= {"nvidia.com/gpu"}


def test_every_cloud_has_a_t4_and_offers_no_gpu_twice() -> None:
    for name in BUILTIN_PROFILES:
        words = list_gpu_words(name)
        assert len(words) == len(set(words))
        assert "T4" in words or name == "kind"
        assert set(words) <= set(CAPABILITIES)


def test_a_profiles_own_keys_come_before_those_of_the_word(tmp_path: Path) -> None:
    own = "pools: {gpu: {cpus: 14, node_selector: {cloud.google.com/gke-nodepool: l4}}}\n"
    profile = load_profile(write(tmp_path, f"extends: gke\ngpu: {{name: L4, max_per_node: 2}}\n{own}"))
    assert profile.gpu is not None
    assert (profile.gpu.name, profile.gpu.max_per_node) == ("NVIDIA L4", 2)
    assert profile.pools["gpu"].cpus == 14
    assert profile.pools["gpu"].node_selector == {
        "cloud.google.com/gke-accelerator": "nvidia-l4",
        "cloud.google.com/gke-nodepool": "l4",
    }


def test_nvmls_name_is_as_good_as_the_word(tmp_path: Path) -> None:
    named = "gpu: {name: Tesla T4, compute_capability: [7, 5], max_per_node: 4}"
    profile = load_profile(write(tmp_path, f"extends: gke\n{named}\n"))
    assert profile.model_copy(update={"name": "gke"}) == load_profile("gke")
