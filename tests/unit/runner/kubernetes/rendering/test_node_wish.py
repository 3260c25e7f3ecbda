"""The node that a pod should run on, beside what its pool and others ask for."""

import json
from typing import Any

import pytest

from factories import make_cell
from job_manifests import KINDS, load, make_key, make_renderer, plan
from runner.kubernetes.rendering import ANY_NODE, NodeWish
from runner.profiles.model import Profile

NODE = "ip-10-0-1-7.eu-central-1.compute.internal"
BY_NAME = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}


def render_affinity(profile: Profile, device: str, wish: NodeWish) -> dict[str, Any]:
    """Return the affinity of a cell's pod."""
    cell = make_cell(device=device)
    job = json.loads(make_renderer(profile).render(plan(cell), make_key(cell), wish))
    affinity: dict[str, Any] = job["spec"]["template"]["spec"].get("affinity", {})
    return affinity


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_every_alternative_of_a_pool_gets_the_required_node_and_keeps_its_own_conditions(
    name: str, device: str
) -> None:
    before = render_affinity(load(name), device, ANY_NODE)
    after = render_affinity(load(name), device, NodeWish(node=NODE))
    terms = before.get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    expected = [term | BY_NAME for term in terms.get("nodeSelectorTerms", [{}])]
    assert after["nodeAffinity"] == {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": expected}}
    assert after.get("podAntiAffinity") == before.get("podAntiAffinity")


def test_a_pod_without_any_affinity_gets_one() -> None:
    pool = load("kind").pools["cpu"].model_copy(update={"is_alone_on_node": False, "node_affinity": ()})
    profile = load("kind", pools={"cpu": pool})
    assert render_affinity(profile, "cpu", ANY_NODE) == {}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [BY_NAME]}}
    wish = NodeWish(node=NODE)
    assert render_affinity(profile, "cpu", wish) == {"nodeAffinity": required}


def test_a_machine_type_is_preferred_above_all_else_and_changes_no_requirement() -> None:
    before, after = (
        render_affinity(load("eks"), "gpu", wish)["nodeAffinity"]
        for wish in (ANY_NODE, NodeWish(instance_type="g4dn.xlarge"))
    )
    by_type = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g4dn.xlarge"]}
    preferred = [{"weight": 100, "preference": {"matchExpressions": [by_type]}}]
    assert after == before | {"preferredDuringSchedulingIgnoredDuringExecution": preferred}


def test_the_jobs_of_one_shape_have_each_its_own_node() -> None:
    renderer, cell = make_renderer(load("kind")), make_cell()
    bodies = [renderer.render(plan(cell), make_key(cell), NodeWish(node=f"node-{number}")) for number in (1, 2)]
    assert b'"node-1"' in bodies[0]
    assert bodies[0].replace(b'"node-1"', b'"node-2"') == bodies[1]
