"""Containers that a policy of the cluster adds to pods: told, recorded, and no reason for a Job never to end."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from commands import create
from doctor_calls import Examine
from runs import DEADLINE_SECONDS, Site, check_all_once, make_cells, wait_for

from bench.schema import read_placement
from bench.store import Store, placements_prefix
from runner.kubernetes import session
from runner.kubernetes.connection import Connection

POLICIES = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
BINDINGS = f"{POLICIES.removesuffix('policies')}policybindings"
PLAIN = ("containers", 'Object.spec.containers{name: "proxy", image: "proxy:1"}')
NATIVE = ("initContainers", '{"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}')
MORE_MEMORY = '[JSONPatch{op: "replace", path: "/spec/containers/0/resources/limits/memory", value: "4Gi"}]'


def add_container(place: str, container: str) -> str:
    """Return the expression of a policy that adds a container to a pod."""
    if place == "containers":
        return f'[JSONPatch{{op: "add", path: "/spec/containers/-", value: {container}}}]'
    return f'[JSONPatch{{op: "add", path: "/spec/{place}", value: [{container}]}}]'


@pytest.fixture
def change_pods(connection: Connection, namespace: str) -> Iterator[Callable[[str], None]]:
    """Have the API server change every pod of the namespace by a patch; returns when it does."""
    name = f"change-{uuid.uuid4().hex[:8]}"

    def change(patch: str) -> None:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
        spec = {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [rule],
            },
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
        }
        create(connection, POLICIES, {"metadata": {"name": name}, "spec": spec})
        create(connection, BINDINGS, {"metadata": {"name": name}, "spec": {"policyName": name}})
        wait_for(is_changed, "the policy to be in force")

    def is_changed() -> bool:
        resources = {"limits": {"cpu": "1", "memory": "3Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}
        containers = [{"name": "bench", "image": "x", "resources": resources}]
        asked: dict[str, Any] = {"serviceAccountName": "benchmatrix-cell", "containers": containers}
        path = f"/api/v1/namespaces/{namespace}/pods"
        made = create(connection, path, {"metadata": {"name": "probe"}, "spec": asked}, dryRun="All")
        return "proxy" in str(made["spec"]) or "4Gi" in str(made["spec"])

    yield change
    connection.request("delete", f"{BINDINGS}/{name}")
    connection.request("delete", f"{POLICIES}/{name}")


def list_others(store: Store, run_id: str) -> list[tuple[str, ...]]:
    """Return what the placements of a run say of other containers."""
    return [read_placement(store.get(key)).other_containers for key in store.list_keys(placements_prefix(run_id))]


def test_a_container_that_a_policy_adds_is_told_and_recorded_and_keeps_no_job_from_ending(
    site: Site, change_pods: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "HELD_SECONDS", 0.5)
    change_pods(add_container(*PLAIN))
    kubelet = site.start_kubelet(num_nodes=2)
    setup = site.make_setup(make_cells(4))

    setup.start().result(DEADLINE_SECONDS)

    check_all_once(setup, kubelet, 4)
    wait_for(lambda: not setup.list_jobs(), "Jobs that are deleted")
    changed, held = sorted(setup.observed.warnings, key=lambda warning: "has ended" in warning)
    assert "an admission webhook or policy of the cluster changed pod " in changed
    assert ": the container proxy was added, " in changed
    assert "the container proxy, which is none of this tool's, keeps the pod from ending" in held
    assert list_others(site.store, setup.run.run_id) == [("proxy",)] * 4


def test_a_measurement_that_failed_beside_a_container_that_stays_has_its_own_record(
    site: Site, change_pods: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "HELD_SECONDS", 0.5)
    change_pods(add_container(*PLAIN))
    site.start_kubelet(lambda pod: "oom", num_nodes=1)
    setup = site.make_setup(make_cells(1))

    setup.start().result(DEADLINE_SECONDS)

    (result,) = setup.observed.results
    assert result.error is not None
    assert result.error.kind == "out-of-memory"
    wait_for(lambda: not setup.list_jobs(), "a Job that is deleted")


@pytest.mark.parametrize(
    ("change", "words", "others"),
    [
        (add_container(*NATIVE), ": the container proxy was added, ", ("proxy",)),
        (MORE_MEMORY, ": its QoS class is Burstable: other pods may use its cores and memory", ()),
    ],
    ids=["a sidecar", "limits"],
)
def test_what_a_policy_makes_of_a_pod_is_told_once_and_recorded(
    site: Site, change_pods: Callable[[str], None], change: str, words: str, others: tuple[str, ...]
) -> None:
    change_pods(change)
    kubelet = site.start_kubelet(num_nodes=1, run_seconds=1.0)
    setup = site.make_setup(make_cells(2))

    setup.start().result(DEADLINE_SECONDS)

    check_all_once(setup, kubelet, 2)
    (warning,) = setup.observed.warnings
    assert words in warning
    assert list_others(site.store, setup.run.run_id) == [others] * 2


def test_doctor_says_what_a_policy_adds(examine: Examine, change_pods: Callable[[str], None]) -> None:
    change_pods(add_container(*PLAIN))

    _, findings = examine()

    found = findings["pod: pytorch on the CPU"]
    assert found["state"] == "warning"
    assert found["message"].endswith("the container proxy was added")
