"""Faults of nodes and of the API server under a run: each repeat is measured once to its end and has one record."""

import json
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from disruptions import FirstHangs, check_measured_again
from runs import (
    DEADLINE_SECONDS,
    ConnectThrough,
    MakeSetup,
    StartKubelet,
    check_all_once,
    make_cells,
    make_profile,
    wait_for,
)

from bench.exit_codes import EXIT_TRY_AGAIN
from control_plane import ADMIN_TOKEN, ControlPlane
from fake_kubelet import Pod
from faulty_server import Fault, FaultyServer
from runner.kubernetes.connection import ApiError, Connection


def create(connection: Connection, path: str, **body: Any) -> None:
    connection.request("create", path, body=json.dumps(body).encode())


def was_admitted(connection: Connection, path: str, name: str, spec: dict[str, Any]) -> bool:
    """Create a pod; return False where its priority class is not known yet."""
    try:
        create(connection, path, kind="Pod", metadata={"name": name}, spec=spec)
    except ApiError as error:
        if "no PriorityClass" not in str(error):
            raise
        return False
    return True


# Nodes


@pytest.mark.usefixtures("lost_node")
def test_a_cell_that_a_pod_of_higher_priority_displaces_is_measured_again(
    make_setup: MakeSetup, connection: Connection, namespace: str, start_kubelet: StartKubelet
) -> None:
    decide = FirstHangs()
    kubelet = start_kubelet(decide, num_nodes=1)
    setup = make_setup(make_cells(1))
    running = setup.start()
    node = decide.await_running(setup)["spec"]["nodeName"]
    name = f"urgent-{uuid.uuid4().hex[:6]}"
    create(
        connection, "/apis/scheduling.k8s.io/v1/priorityclasses", kind="PriorityClass", metadata={"name": name}, value=9
    )
    urgent = {
        "priorityClassName": name,
        "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "4"}}}],
        "nodeSelector": {"kubernetes.io/hostname": node},
    }
    # Admission learns of the class by a watch, on a busy machine a moment later.
    wait_for(lambda: was_admitted(connection, f"/api/v1/namespaces/{namespace}/pods", name, urgent), f"class {name}")
    wait_for(lambda: connection.get_object(f"/api/v1/namespaces/{namespace}/pods/{name}")["spec"].get("nodeName"), name)
    connection.request("delete", f"/api/v1/namespaces/{namespace}/pods/{name}", query={"gracePeriodSeconds": "0"})

    running.result(DEADLINE_SECONDS)

    check_measured_again(setup, kubelet)


def test_a_cell_that_the_eviction_api_takes_down_is_measured_again(
    make_setup: MakeSetup, connection: Connection, namespace: str, start_kubelet: StartKubelet
) -> None:
    decide = FirstHangs()
    kubelet = start_kubelet(decide, num_nodes=1)
    setup = make_setup(make_cells(1))
    running = setup.start()
    name = decide.await_running(setup)["metadata"]["name"]
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    create(connection, path, apiVersion="policy/v1", kind="Eviction", metadata={"name": name})

    running.result(DEADLINE_SECONDS)

    check_measured_again(setup, kubelet)


def test_pods_that_fail_on_infrastructure_are_made_again_up_to_the_limit(
    make_setup: MakeSetup, namespace: str, start_kubelet: StartKubelet
) -> None:
    busy: list[Pod] = []

    def decide(pod: Pod) -> str:
        busy.append(pod)
        return "busy"

    start_kubelet(decide, num_nodes=1)
    profile = make_profile(namespace, backoff_limit=1)
    setup = make_setup(make_cells(1), profile=profile)

    setup.measure()

    assert len(busy) == 2
    (result,) = setup.observed.results
    assert result.error is not None
    assert (result.status, result.error.kind, result.error.exit_code) == ("failed", "infrastructure", EXIT_TRY_AGAIN)
    assert set(setup.count_records().values()) == {1}


def test_a_pod_over_its_storage_limit_is_not_made_again_though_it_ended_as_by_sigterm(
    make_setup: MakeSetup, start_kubelet: StartKubelet
) -> None:
    started: list[Pod] = []

    def decide(pod: Pod) -> str:
        started.append(pod)
        return "over-limit"

    start_kubelet(decide, num_nodes=1)
    setup = make_setup(make_cells(1))

    setup.measure()

    (result,) = setup.observed.results
    assert result.error is not None
    assert (result.status, result.error.kind) == ("failed", "killed")
    assert result.error.message == 'evicted by the kubelet: Usage of EmptyDir volume "tmp" exceeds the limit "8Gi".'
    assert set(setup.count_records().values()) == {1}


def test_a_cell_whose_pod_was_deleted_and_killed_is_measured_again(
    make_setup: MakeSetup, connection: Connection, namespace: str, start_kubelet: StartKubelet
) -> None:
    decide = FirstHangs()
    kubelet = start_kubelet(decide, num_nodes=1)
    setup = make_setup(make_cells(1))
    running = setup.start()
    name = decide.await_running(setup)["metadata"]["name"]
    connection.request("delete", f"/api/v1/namespaces/{namespace}/pods/{name}")  # the fake kubelet kills: 137

    running.result(DEADLINE_SECONDS)

    check_measured_again(setup, kubelet)


# API server


def test_a_run_goes_on_when_its_watches_are_cut(
    make_setup: MakeSetup, start_kubelet: StartKubelet, faulty: FaultyServer, connect_through: ConnectThrough
) -> None:
    kubelet = start_kubelet(num_nodes=4, run_seconds=0.3)
    # One Job at a time: none follows before a watch has reported the end of the one before it.
    setup = make_setup(make_cells(12), max_in_flight=1)
    through = connect_through(faulty)
    running = setup.start(through)
    for number in range(1, 6):
        wait_for(lambda number=number: len(setup.observed.results) >= 2 * number or running.done(), "records")  # type: ignore[misc]
        wait_for(lambda: faulty.num_open_watches or running.done(), "a watch to cut")
        faulty.cut_watches()

    running.result(DEADLINE_SECONDS)

    check_all_once(setup, kubelet, 12)
    assert faulty.num_cut_watches >= 5
    assert through.num_requests["list jobs"] == 1  # what was missed came with the next watch


def test_a_server_that_is_busy_is_given_time_and_lost_answers_make_no_second_job(
    make_setup: MakeSetup, start_kubelet: StartKubelet, faulty: FaultyServer, connect_through: ConnectThrough
) -> None:
    kubelet = start_kubelet(num_nodes=4)
    setup = make_setup(make_cells(20))
    faults: list[Fault] = ["too-many-requests", "lost-answer", "cut-off"]
    lock = threading.Lock()

    def choose_fault(method: str, path: str) -> Fault | None:
        with lock:
            return faults[faulty.num_faults % 3] if method == "POST" and faulty.num_faults < 24 else None

    faulty.choose_fault = choose_fault
    through = connect_through(faulty)

    setup.measure(through)

    check_all_once(setup, kubelet, 20)
    assert 24 <= faulty.num_faults
    assert through.rate_limiter.num_allowed < 32


EXEC_PLUGIN = """
printf '{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "%s"}}' \\
  "$(cat "$0")"
"""


@pytest.mark.parametrize("source", ["token file", "exec plugin"])
def test_an_expired_token_is_read_again(
    make_setup: MakeSetup,
    control_plane: ControlPlane,
    start_kubelet: StartKubelet,
    faulty: FaultyServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
) -> None:
    token, path = tmp_path / "token", tmp_path / "kubeconfig"
    token.write_text("first")
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", EXEC_PLUGIN, str(token)]}
    user: dict[str, Any] = {"tokenFile": str(token)} if source == "token file" else {"exec": plugin}
    control_plane.write_kubeconfig(path, server=faulty.start(), user=user)
    monkeypatch.setenv("KUBECONFIG", str(path))
    faulty.tokens = {"first": ADMIN_TOKEN}
    kubelet = start_kubelet(num_nodes=2, run_seconds=0.2)
    setup = make_setup(make_cells(8), max_in_flight=2)
    running = setup.start(Connection(context=control_plane.context, patience_seconds=DEADLINE_SECONDS))
    wait_for(lambda: setup.observed.results, "a record")

    faulty.tokens = {"second": ADMIN_TOKEN}
    faulty.cut_watches()
    wait_for(lambda: faulty.num_unauthorized >= 3, "requests that are refused")  # the new token comes a little late
    token.write_text("second")
    running.result(DEADLINE_SECONDS)

    check_all_once(setup, kubelet, 8)
