"""What a profile says of cells: whether it can run them, on which nodes, and how they share a GPU there."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from bench.errors import UserError
from factories import make_cell, present
from profile_files import write
from runner.profiles.loading import load_profile
from runner.profiles.model import GpuSharing, NodeRequirement, Profile

LEAST = {"pools": {"cpu": {"cpus": 1, "memory": "1Gi"}}}


def test_a_namespace_of_the_command_line_is_checked() -> None:
    profile = load_profile("kind")
    assert profile.in_namespace("team-a").namespace == "team-a"
    for name in ("../kube-system", "a/b", "", "A", "a\n", "x" * 64):
        with pytest.raises(UserError, match=r"^--namespace: found .* expected a name of a-z"):
            profile.in_namespace(name)


def make_profile(**keys: Any) -> Profile:
    return Profile.model_validate_json(json.dumps({"name": "mine", **LEAST, **keys}))


def test_a_cell_needs_its_pool_and_its_data() -> None:
    data = {"claim": "data", "mount_path": "/data"}
    assert make_profile().explain_unsupported(make_cell(device="gpu")) == "the profile mine has no pool 'gpu'"
    assert (
        make_profile().explain_unsupported(make_cell(data_dir="/data/x"))
        == "data_dir: the profile mine has no `data` volume"
    )
    assert make_profile(data=data).explain_unsupported(make_cell(data_dir="/data/x")) is None
    for folder in ("/database", "/data/../etc"):
        reason = make_profile(data=data).explain_unsupported(make_cell(data_dir=folder))
        assert reason == f"data_dir: {folder} is not in /data, the data of the profile mine"


def test_compiled_pytorch_runs_unless_the_images_have_no_compiler() -> None:
    for device in ("cpu", "gpu"):
        cell = make_cell(mode="compiled", device=device)
        assert load_profile("gke").explain_unsupported(cell) is None
    reason = make_profile(has_compiler=False).explain_unsupported(make_cell(mode="compiled"))
    assert reason == "compiled PyTorch needs a compiler, and the images have none (has_compiler of the profile)"
    assert make_profile(has_compiler=False).explain_unsupported(make_cell(framework="jax", mode="compiled")) is None


GPU = {"name": "Tesla T4", "compute_capability": [7, 5], "max_per_node": 4}
SLICED = {"clients": [2, 4], "clients_label": "clients"}


def make(sharing: dict[str, Any] | None = None, pool: dict[str, Any] | None = None, **gpu: Any) -> Profile:
    pools = {"gpu": {"cpus": 2, "memory": "8Gi"} | (pool or {})}
    given = {"name": "mine", "pools": pools, "gpu": GPU | gpu | ({"sharing": sharing} if sharing else {})}
    return Profile.model_validate_json(json.dumps(given))


def explain(profile: Profile, **cell: Any) -> str | None:
    return profile.explain_unsupported(make_cell(device="gpu", **cell))


def test_a_cell_with_tenants_needs_nodes_that_share_their_gpus_so() -> None:
    reason = "sharing: mps: gpu.sharing.mps.clients of the profile mine names no nodes that share GPUs so"
    assert explain(make({"time-slicing": SLICED}), tenants=2, sharing="mps") == reason
    assert explain(make(), tenants=2, sharing="mps") == reason
    assert explain(make({"mps": {}}), tenants=2, sharing="mps") == reason
    assert explain(make()) is None


@pytest.mark.parametrize(
    ("sharing", "served", "reason"),
    [
        ("time-slicing", (2, 3, 4), "tenants: 5: gpu.sharing.time-slicing.clients of the profile mine has at most 4"),
        ("mps", (2, 4), "tenants: 5: gpu.sharing.mps.clients of the profile mine has 2, 4; with MPS"),
    ],
)
def test_time_slicing_takes_a_node_with_enough_clients_and_mps_one_with_as_many(
    sharing: str, served: tuple[int, ...], reason: str
) -> None:
    reasons = {number: explain(make({sharing: SLICED}), tenants=number, sharing=sharing) for number in (2, 3, 4, 5)}
    assert tuple(number for number, found in reasons.items() if found is None) == served
    assert str(reasons[5]).startswith(reason)


def test_tenants_of_a_claimed_gpu_need_no_node_that_shares_and_take_turns() -> None:
    profile = make(request="claim")
    assert explain(profile, tenants=8) is None
    assert profile.find_pool(make_cell(device="gpu", tenants=8)) == profile.pools["gpu"]
    reason = explain(profile, tenants=2, sharing="mps")
    assert reason == "sharing: mps: the tenants of a claimed GPU (gpu.request: claim) take turns, no more"


def require(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def test_what_sharing_asks_of_a_label_takes_the_place_of_what_the_pool_asks_of_it() -> None:
    pool = {
        "node_selector": {"zone": "a", "kind": "whole"},
        "node_affinity": [
            [require("type", "In", "small")],
            [require("type", "In", "large"), require("kind", "Exists")],
        ],
        "node_requirements": [require("kind", "NotIn", "shared"), require("slices", "DoesNotExist")],
    }
    sharing = SLICED | {"node_requirements": [require("kind", "In", "shared")]}
    profile = make({"time-slicing": sharing}, pool)
    found = present(profile.find_pool(make_cell(device="gpu", tenants=3)))
    assert found.node_selector == {"zone": "a"}
    added = (
        NodeRequirement(key="slices", operator="DoesNotExist"),
        NodeRequirement(key="kind", operator="In", values=("shared",)),
        NodeRequirement(key="clients", operator="In", values=("4",)),
    )
    types = [NodeRequirement(key="type", operator="In", values=(name,)) for name in ("small", "large")]
    assert found.node_selector_terms == tuple((only, *added) for only in types)
    assert profile.find_pool(make_cell(device="gpu")) == profile.pools["gpu"]


def test_the_name_of_a_gpu_may_say_that_it_is_shared() -> None:
    product = "nvidia.com/gpu.product"
    profile = make({"time-slicing": SLICED}, {"node_affinity": [[require(product, "In", "Tesla-T4")]]})
    found = present(profile.find_pool(make_cell(device="gpu", tenants=2)))
    ((first, *_),) = found.node_selector_terms
    assert first == NodeRequirement(key=product, operator="In", values=("Tesla-T4", "Tesla-T4-SHARED"))


def test_several_numbers_of_clients_need_a_label_that_tells_them_apart() -> None:
    with pytest.raises(ValidationError, match=r"clients_label: is missing"):
        GpuSharing(clients=(2, 4))


def test_tenants_with_cores_of_their_own_take_even_numbers() -> None:
    pool = {"has_exclusive_cores": True}
    with pytest.raises(ValidationError, match=r"gpu\.sharing\.time-slicing\.cpus: 1 is odd"):
        make({"time-slicing": SLICED | {"cpus": 1}}, pool)
    assert make({"time-slicing": SLICED | {"cpus": 4}}, pool).pools["gpu"].has_exclusive_cores


@pytest.mark.parametrize("name", ["gke", "eks", "aks", "k3s", "openshift"])
def test_a_clouds_profile_needs_only_the_numbers_of_clients(name: str, tmp_path: Any) -> None:
    """It knows the labels; cells that are alone still refuse what they ask for."""
    text = (
        f"extends: {name}\ngpu: {{name: A100, sharing: {{time-slicing: {{clients: [2, 8]}}, mps: {{clients: [2]}}}}}}"
    )
    profile = load_profile(write(tmp_path, text))
    for strategy in ("time-slicing", "mps"):
        cell = make_cell(device="gpu", tenants=2, sharing=strategy)
        assert profile.explain_unsupported(cell) is None
        pool, whole = profile.find_pool(cell), profile.pools["gpu"]
        asked = {rule.key: rule for rule in present(pool).node_requirements if rule.operator == "In"}
        refused = {rule.key: rule for rule in whole.node_requirements if rule.operator == "NotIn"}
        (label,) = (key for key in asked if key.endswith("sharing-strategy"))
        assert set(asked[label].values) <= set(refused[label].values)
        (clients,) = (rule for key, rule in asked.items() if key.endswith(("replicas", "clients-per-gpu")))
        assert clients.values == (("2", "8") if strategy == "time-slicing" else ("2",))


def test_the_namespace_lets_pods_into_the_nodes_ipc_only_where_a_profile_offers_nodes_for_it(tmp_path: Any) -> None:
    assert load_profile("gke").pod_security == "restricted"
    offered = "extends: gke\ngpu: {name: T4, sharing: {%s: {clients: [2]}}}"
    assert load_profile(write(tmp_path, offered % "time-slicing")).pod_security == "restricted"
    assert load_profile(write(tmp_path, offered % "mps")).pod_security == "privileged"
