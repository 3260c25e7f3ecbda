"""The chart on a real API server, put there by Helm's own engine: what it makes, changes, leaves, and may do."""

import json
import re
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import helm_python
import pytest
from commands import CallMain, create, make_call
from kubernetes.config import incluster_config
from runs import wait_for

from bench.schema import Run
from bench.store import LATEST_REPORT_KEY, LATEST_RUN_KEY, Store
from chart import CHART, make_night, make_values
from control_plane import AUDITED_NAMESPACE, ControlPlane
from fake_kubelet import FakeKubelet, Pod
from runner.kubernetes import recording, session
from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.connection import Connection
from s3_server import S3Server

RELEASE, FULLNAME = "sweeps", "sweeps-benchmatrix"
MATRIX = {
    "name": "night",
    "axes": {"seed": [1, 2, 3, 4]},
    "defaults": {
        "model": "conv6",
        "framework": "pytorch",
        "device": "cpu",
        "phase": "train",
        "batch_size": 1,
        "repeats": 1,
    },
}
KINDS = (
    "/apis/batch/v1/{}/cronjobs",
    "/apis/batch/v1/{}/jobs",
    "/api/v1/{}/pods",
    "/api/v1/{}/serviceaccounts",
    "/api/v1/{}/secrets",
    "/api/v1/{}/services",
    "/api/v1/{}/resourcequotas",
    "/apis/apps/v1/{}/deployments",
    "/apis/networking.k8s.io/v1/{}/networkpolicies",
    "/apis/rbac.authorization.k8s.io/v1/{}/roles",
    "/apis/rbac.authorization.k8s.io/v1/{}/rolebindings",
    "/apis/resource.k8s.io/v1/{}/resourceclaimtemplates",
)
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def make_restricted_namespace(connection: Connection, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": RESTRICTED}}
    create(connection, "/api/v1/namespaces", body)


@pytest.fixture
def place(connection: Connection) -> Iterator[str]:
    """A namespace that takes only restricted pods."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    make_restricted_namespace(connection, name)
    yield name
    connection.request("delete", f"/api/v1/namespaces/{name}")


@pytest.fixture
def helm(control_plane: ControlPlane) -> Iterator[Callable[[str], helm_python.Config]]:
    """Helm's engine for a namespace."""
    opened: list[helm_python.Config] = []

    def open_config(namespace: str) -> helm_python.Config:
        opened.append(helm_python.Config(kubeconfig_path=control_plane.kubeconfig, namespace=namespace))
        return opened[-1]

    yield open_config
    for config in opened:
        config.close()


def list_objects(connection: Connection, namespace: str, release: str = RELEASE) -> set[str]:
    """Return kind and name of every object of a release, pods and Jobs that were made of it too."""
    found = set()
    for path in KINDS:
        kind = path.rpartition("/")[2]
        for item in connection.list_items(path.format(f"namespaces/{namespace}")):
            if item["metadata"].get("labels", {}).get("app.kubernetes.io/instance") == release:
                found.add(f"{kind}/{item['metadata']['name']}")
    return found


def get_cronjob(connection: Connection, namespace: str) -> dict[str, Any]:
    return connection.get_object(f"/apis/batch/v1/namespaces/{namespace}/cronjobs/{FULLNAME}")


def trigger(connection: Connection, namespace: str, name: str) -> dict[str, Any]:
    """Begin a night by hand, and return its Job."""
    body = make_night(get_cronjob(connection, namespace), name)
    return create(connection, f"/apis/batch/v1/namespaces/{namespace}/jobs", body)


def find_pod_of(connection: Connection, namespace: str, job: str) -> dict[str, Any]:
    query = {"labelSelector": f"batch.kubernetes.io/job-name={job}"}
    pod: dict[str, Any] = wait_for(
        lambda: next(iter(connection.list_items(f"/api/v1/namespaces/{namespace}/pods", **query)), None), "the runner"
    )
    return pod


def test_install_upgrade_rollback_and_uninstall_leave_nothing(
    connection: Connection, place: str, helm: Callable[[str], helm_python.Config]
) -> None:
    config = helm(place)
    config.install(CHART, RELEASE, make_values(trialStore__enabled=True, quota__hard={"count/jobs.batch": "100"}))
    installed = list_objects(connection, place)
    assert {f"cronjobs/{FULLNAME}", f"roles/{FULLNAME}-runner", f"serviceaccounts/{FULLNAME}-cells"} <= installed
    keys = connection.get_object(f"/api/v1/namespaces/{place}/secrets/{FULLNAME}-store")["data"]
    trigger(connection, place, "first-night")
    pod = find_pod_of(connection, place, "first-night")  # the namespace takes only restricted ones

    changed = make_values(trialStore__enabled=True, matrix="paper", night__suspend=True)
    config.upgrade(CHART, RELEASE, changed)

    spec = get_cronjob(connection, place)["spec"]
    assert spec["suspend"] is True
    assert "paper" in spec["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert connection.get_object(f"/api/v1/namespaces/{place}/secrets/{FULLNAME}-store")["data"] == keys
    assert f"resourcequotas/{FULLNAME}-cells" not in list_objects(connection, place)
    assert find_pod_of(connection, place, "first-night")["metadata"]["uid"] == pod["metadata"]["uid"]

    config.rollback(RELEASE)

    spec = get_cronjob(connection, place)["spec"]
    assert spec["suspend"] is False
    assert "nightly" in spec["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert installed <= list_objects(connection, place)

    config.uninstall(RELEASE)

    wait_for(lambda: not list_objects(connection, place) - {f"pods/{pod['metadata']['name']}"}, "nothing to be left")
    secrets = connection.list_items(f"/api/v1/namespaces/{place}/secrets")
    assert [secret["metadata"]["name"] for secret in secrets] == []


def test_two_releases_share_a_namespace_and_do_not_meet(
    connection: Connection, place: str, helm: Callable[[str], helm_python.Config]
) -> None:
    config = helm(place)
    config.install(CHART, RELEASE, make_values())
    other = "2.other"  # as Helm takes it, but no Service and no container may be called so
    config.install(CHART, other, make_values(trialStore__enabled=True))
    first = list_objects(connection, place)

    config.uninstall(other)

    assert list_objects(connection, place) == first
    wait_for(lambda: not list_objects(connection, place, other), "the other release to be gone")


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


@pytest.fixture
def optional_kinds(connection: Connection) -> Iterator[None]:
    """The kinds of Kueue and of the Prometheus operator that the chart uses, without what acts on them."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    kinds = [
        ("kueue.x-k8s.io", "v1beta1", "LocalQueue", "localqueues"),
        ("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors"),
    ]
    for group, version, kind, plural in kinds:
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        body = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural},
                "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
            },
        }
        create(connection, path, body)

    def are_served() -> bool:
        groups = connection.get_object("/apis")["groups"]
        return {group for group, *_ in kinds} <= {group["name"] for group in groups}

    wait_for(are_served, "the kinds to be served")
    yield
    for group, _, _, plural in kinds:
        connection.request("delete", f"{path}/{plural}.{group}")


def test_optional_kinds_are_used_where_the_cluster_has_them(
    connection: Connection, place: str, helm: Callable[[str], helm_python.Config], optional_kinds: None
) -> None:
    values = make_values(
        kueue__localQueue="q", kueue__clusterQueue="all", metrics__enabled=True, metrics__podMonitor__enabled=True
    )
    helm(place).install(CHART, RELEASE, values)

    queue = connection.get_object(f"/apis/kueue.x-k8s.io/v1beta1/namespaces/{place}/localqueues/q")
    assert queue["spec"]["clusterQueue"] == "all"
    monitors = connection.list_items(f"/apis/monitoring.coreos.com/v1/namespaces/{place}/podmonitors")
    assert [monitor["metadata"]["name"] for monitor in monitors] == [f"{FULLNAME}-runner"]
    helm(place).uninstall(RELEASE)


# A night


def become_runner(
    connection: Connection, namespace: str, plane: ControlPlane, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lead this process to the API server as a pod of the runner is led there: by its token and two variables."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{FULLNAME}-runner/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    (folder / "token").write_text(create(connection, path, request)["status"]["token"])
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(folder / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(plane.folder / "api.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(plane.port))
    monkeypatch.setenv("KUBECONFIG", "/nowhere")


def read_arguments(pod: dict[str, Any], job: dict[str, Any], folder: Path) -> list[str]:
    """Return the words that a runner's pod is started with, its files in `folder`."""
    names = {"JOB_NAME": job["metadata"]["name"], "JOB_UID": job["metadata"]["uid"]}
    for key in ("profile", "matrix"):
        (folder / f"{key}.yaml").write_text(pod["metadata"]["annotations"][f"benchmatrix/{key}"])
    given = pod["spec"]["containers"][0]["args"]
    words = [re.sub(r"\$\((\w+)\)", lambda found: names[found[1]], word) for word in given]
    return [word.replace("/etc/benchmatrix", str(folder)).replace("/tmp/report", f"{folder}/report") for word in words]


def make_endings() -> Callable[[Pod], Any]:
    """The first pod ends well, the second leaves its record in its log, others hang."""
    endings = iter(["ok", "in-log"])
    return lambda pod: next(endings, "hang")


def read_requests(plane: ControlPlane, user: str) -> set[tuple[str, str, str]]:
    """Return API group, resource and verb of every request of a user, from the API server's audit log."""
    requests = set()
    for line in plane.audit_log.read_text().splitlines():
        event = json.loads(line)
        if event["user"]["username"] == user:
            about = event["objectRef"]
            resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
            requests.add((about.get("apiGroup", ""), resource, event["verb"]))
    return requests


def asked_for_events(plane: ControlPlane, user: str) -> bool:
    return ("", "events", "list") in read_requests(plane, user)


def make_clock(is_late: Callable[[], bool]) -> Callable[[], datetime]:
    """Return a clock that goes right until it is late, and then a day ahead."""
    return lambda: datetime.now(UTC) + timedelta(days=1 if is_late() else 0)


@pytest.fixture
def nights(connection: Connection) -> Iterator[str]:
    """The namespace whose service accounts are audited."""
    make_restricted_namespace(connection, AUDITED_NAMESPACE)
    yield AUDITED_NAMESPACE
    connection.request("delete", f"/api/v1/namespaces/{AUDITED_NAMESPACE}")


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = S3Server(root=tmp_path / "s3" / "root")
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    server.start()
    yield f"s3://{server.bucket}/nights"
    server.stop()


def test_a_night_asks_for_what_its_role_allows_and_reports_at_its_deadline_what_is_missing(
    connection: Connection,
    control_plane: ControlPlane,
    nights: str,
    helm: Callable[[str], helm_python.Config],
    start_kubelet: Callable[..., FakeKubelet],
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    call_main: CallMain = make_call(monkeypatch, capfd)
    monkeypatch.setattr(recording, "LOG_PATIENCE_SECONDS", 1.0)  # no kubelet hands out a log here
    store = Store.open(bucket)
    # Beside the runner's own pod one more at a time: two end, the third hangs, and the fourth gets none. When the
    # runner has asked why, its deadline passes.
    user = f"system:serviceaccount:{nights}:{FULLNAME}-runner"
    monkeypatch.setattr(session, "read_clock", make_clock(lambda: asked_for_events(control_plane, user)))
    values = make_values(store__url=bucket, customMatrix=MATRIX, quota__hard={"pods": "2"})
    helm(nights).install(CHART, RELEASE, values)
    role = connection.get_object(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{nights}/roles/{FULLNAME}-runner")
    allowed = {(rule["apiGroups"][0], rule["resources"][0], verb) for rule in role["rules"] for verb in rule["verbs"]}
    start_kubelet(make_endings(), num_nodes=2, store=store)
    job = trigger(connection, nights, "first-night")
    words = read_arguments(find_pod_of(connection, nights, "first-night"), job, tmp_path)
    with monkeypatch.context() as patched:
        become_runner(connection, nights, control_plane, tmp_path, patched)
        code, out, err = call_main(*words)

    assert (code, err) == (1, ""), out
    assert "the deadline has passed" in out
    assert read_requests(control_plane, user) == allowed
    latest = Run.model_validate_json(store.get(LATEST_RUN_KEY))
    assert latest.ending is not None
    assert (latest.run_id, latest.ending.num_repeats) == ("first-night", {"ok": 1, "failed": 1, "missing": 2})
    assert len(latest.ending.missing) == 2
    assert (tmp_path / "report" / "report.html").read_bytes() == store.get(LATEST_REPORT_KEY)
    path = f"/apis/batch/v1/namespaces/{nights}/jobs"
    left = connection.list_items(path, labelSelector="app.kubernetes.io/component=cell")
    assert all(item["status"].get("conditions") or "deletionTimestamp" in item["metadata"] for item in left)
    owners = {owner["uid"] for item in left for owner in item["metadata"]["ownerReferences"]}
    assert owners == {job["metadata"]["uid"]}
    # With the night's Job its cells go.
    connection.request("delete", f"{path}/first-night", query={"propagationPolicy": "Background"})
    wait_for(lambda: not connection.list_items(path), "the cells to go")
    helm(nights).uninstall(RELEASE)


def test_doctor_finds_nothing_missing_with_the_rights_that_the_chart_gives(
    connection: Connection,
    control_plane: ControlPlane,
    place: str,
    helm: Callable[[str], helm_python.Config],
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    call_main: CallMain = make_call(monkeypatch, capfd)
    config = helm(place)
    config.install(CHART, RELEASE, make_values(store__url=bucket, customMatrix=MATRIX))
    pod = find_pod_of(connection, place, trigger(connection, place, "night")["metadata"]["name"])
    words = read_arguments(pod, connection.get_object(f"/apis/batch/v1/namespaces/{place}/jobs/night"), tmp_path)
    become_runner(connection, place, control_plane, tmp_path, monkeypatch)

    code, out, _ = call_main("doctor", *words[1:5])

    assert code == 0, out
    assert "0 failed" in out
    assert f"system:serviceaccount:{place}:{FULLNAME}-runner" in out
    config.uninstall(RELEASE)
