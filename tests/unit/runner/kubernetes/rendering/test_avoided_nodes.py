"""Jobs that keep off nodes: a requirement in every term, a preference beside them, and valid for Kubernetes."""

import json
from typing import Any

import pytest

from factories import make_cell
from job_manifests import load, make_renderer, plan
from runner.kubernetes.names import JobKey
from runner.kubernetes.rendering import NONE_AVOIDED, AvoidedNodes, NodeWish

BOTH = AvoidedNodes(excluded=("bad", "worse"), disliked=("odd",))
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def exclude(*names: str) -> dict[str, Any]:
    return {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": list(names)}


def render_affinity(name: str, device: str, *avoided: AvoidedNodes) -> list[dict[str, Any]]:
    """Return the affinity of a Job rendered for each of these nodes, by one renderer as a run has it."""
    renderer, cell = make_renderer(load(name)), make_cell(device=device)
    key = JobKey(run_id="r", cell_id=cell.cell_id, number=1, retry_round=0)
    jobs = [json.loads(renderer.render(plan(cell), key, NodeWish(avoided=nodes))) for nodes in avoided]
    return [job["spec"]["template"]["spec"]["affinity"] for job in jobs]


@pytest.mark.parametrize(("name", "device"), [("gke", "gpu"), ("eks", "gpu"), ("eks", "cpu")])
def test_excluded_nodes_are_in_every_term_since_one_term_is_enough_for_a_node(name: str, device: str) -> None:
    before, after, again = render_affinity(name, device, NONE_AVOIDED, BOTH, NONE_AVOIDED)
    terms = before.get("nodeAffinity", {}).get(REQUIRED, {}).get("nodeSelectorTerms", [{"matchExpressions": []}])
    expected = [{"matchExpressions": [*term["matchExpressions"], exclude("bad", "worse")]} for term in terms]
    assert after["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] == expected
    assert after["nodeAffinity"][PREFERRED] == [
        {"weight": 100, "preference": {"matchExpressions": [exclude("odd")]}},
    ]
    assert after["podAntiAffinity"] == before["podAntiAffinity"]
    assert again == before
