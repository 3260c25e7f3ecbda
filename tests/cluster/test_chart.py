"""The chart on a real API server: what an installation makes, changes and leaves."""

from collections.abc import Callable, Iterator
from typing import Any

import helm_python
import pytest
from commands import create
from releases import FULLNAME, KINDS, RELEASE, find_pod_of, get_cronjob, list_objects, trigger
from runs import wait_for

from chart import CHART, make_values, render
from runner.kubernetes.connection import ApiError, Connection


def test_install_upgrade_rollback_and_uninstall_leave_nothing(
    connection: Connection, place: str, helm: Callable[[str], helm_python.Config]
) -> None:
    config = helm(place)
    config.install(CHART, RELEASE, make_values(trialStore__enabled=True, quota__hard={"count/jobs.batch": "100"}))
    installed = list_objects(connection, place)
    assert {f"cronjobs/{FULLNAME}", f"roles/{FULLNAME}-runner", f"serviceaccounts/{FULLNAME}-cells"} <= installed
    trigger(connection, place, "first-run")
    pod = find_pod_of(connection, place, "first-run")  # the namespace takes only restricted ones

    changed = make_values(trialStore__enabled=True, matrix="paper", schedule__suspend=True)
    config.upgrade(CHART, RELEASE, changed)

    spec = get_cronjob(connection, place)["spec"]
    assert spec["suspend"] is True
    assert "paper" in spec["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert f"resourcequotas/{FULLNAME}-cells" not in list_objects(connection, place)
    assert find_pod_of(connection, place, "first-run")["metadata"]["uid"] == pod["metadata"]["uid"]

    config.rollback(RELEASE)

    spec = get_cronjob(connection, place)["spec"]
    assert spec["suspend"] is False
    assert "nightly" in spec["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert installed <= list_objects(connection, place)

    config.uninstall(RELEASE)

    wait_for(lambda: not list_objects(connection, place) - {f"pods/{pod['metadata']['name']}"}, "nothing to be left")
    secrets = connection.list_items(f"/api/v1/namespaces/{place}/secrets")
    assert [secret["metadata"]["name"] for secret in secrets] == []


def test_claims_of_another_class_are_installed_by_an_upgrade(
    connection: Connection, place: str, helm: Callable[[str], helm_python.Config]
) -> None:
    """The spec of a ResourceClaimTemplate cannot be changed."""
    config = helm(place)

    def list_classes() -> list[str]:
        path = f"/apis/resource.k8s.io/v1/namespaces/{place}/resourceclaimtemplates"
        requests = [item["spec"]["spec"]["devices"]["requests"][0] for item in connection.list_items(path)]
        return [request["exactly"]["deviceClassName"] for request in requests]

    values = make_values(profile__extends="gke", claims__enabled=True, claims__maxPerNode=2)
    config.install(CHART, RELEASE, values)
    assert list_classes() == ["gpu.nvidia.com"] * 2

    config.upgrade(CHART, RELEASE, values | {"claims": values["claims"] | {"deviceClass": "mig.nvidia.com"}})

    assert list_classes() == ["mig.nvidia.com"] * 2
    config.uninstall(RELEASE)


def test_a_namespace_for_the_cells_refuses_other_pods_and_goes_with_the_release(
    connection: Connection, place: str, helm: Callable[[str], helm_python.Config]
) -> None:
    config, cells = helm(place), f"{place}-cells"
    config.install(CHART, RELEASE, make_values(cells__namespace=cells))
    assert f"roles/{FULLNAME}-runner" in list_objects(connection, cells)
    assert f"roles/{FULLNAME}-runner" not in list_objects(connection, place)
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    with pytest.raises(ApiError, match='violates PodSecurity "restricted:latest"'):
        create(connection, f"/api/v1/namespaces/{cells}/pods", pod)

    config.uninstall(RELEASE)

    query = {"fieldSelector": f"metadata.name={cells}"}
    wait_for(lambda: not connection.list_items("/api/v1/namespaces", **query), "the cells' namespace to be gone")


def find_changes(rendered: Any, live: Any, path: str = "") -> Iterator[str]:
    """Yield the places where the API server has another value than was rendered; what it adds is no change."""
    if isinstance(rendered, dict) and isinstance(live, dict):
        for key, value in rendered.items():
            yield from find_changes(value, live.get(key), f"{path}.{key}")
    elif isinstance(rendered, list) and isinstance(live, list) and len(rendered) == len(live):
        for index, pair in enumerate(zip(rendered, live, strict=True)):
            yield from find_changes(*pair, f"{path}[{index}]")
    elif rendered not in (live, {}, [], None):
        yield f"{path}: {rendered!r} became {live!r}"


def test_the_api_server_keeps_every_field_as_it_is_rendered(connection: Connection, place: str) -> None:
    """So neither Argo CD nor Flux sees a difference that is none, and no field has to be left out of the comparison."""
    values = make_values(
        trialStore__enabled=True,
        claims__enabled=True,
        claims__maxPerNode=1,
        profile__extends="gke",
        quota__hard={"count/jobs.batch": "100"},
    )
    folders = {path.rpartition("/")[2]: path for path in KINDS}
    changes = {}
    for manifest in render(values, namespace=place):
        if "helm.sh/hook" in manifest["metadata"].get("annotations", {}):  # Argo CD leaves the test out
            continue
        kind = manifest["kind"].lower()
        plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
        live = create(connection, folders[plural].format(f"namespaces/{place}"), manifest, dryRun="All")
        changes[f"{kind}/{manifest['metadata']['name']}"] = list(find_changes(manifest, live))

    assert len(changes) > 8
    assert {name: found for name, found in changes.items() if found} == {}
