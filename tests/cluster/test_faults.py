"""Faults of nodes and of the API server under a run: each repeat is measured once to its end and has one record."""

import threading
import uuid
from collections.abc import Callable

import pytest
from commands import create
from disruptions import FirstHangs, check_measured_again
from runs import DEADLINE_SECONDS, Site, check_all_once, make_cells, make_profile, wait_for

from bench.errors import EXIT_TRY_AGAIN
from fake_kubelet import Pod
from faulty_server import Fault, FaultyServer
from runner.kubernetes.connection import ApiError, Connection

# Nodes


def displace(connection: Connection, namespace: str, pod: Pod) -> None:
    """Have a pod of higher priority take the place of this one, and go."""
    name = f"urgent-{uuid.uuid4().hex[:6]}"
    classes, pods = "/apis/scheduling.k8s.io/v1/priorityclasses", f"/api/v1/namespaces/{namespace}/pods"
    create(connection, classes, {"metadata": {"name": name}, "value": 9})
    urgent = {
        "priorityClassName": name,
        "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "4"}}}],
        "nodeSelector": {"kubernetes.io/hostname": pod["spec"]["nodeName"]},
    }

    def is_admitted() -> bool:  # admission learns of the class by a watch, on a busy machine a moment later
        try:
            create(connection, pods, {"metadata": {"name": name}, "spec": urgent})
        except ApiError as error:
            if "no PriorityClass" not in str(error):
                raise
            return False
        return True

    wait_for(is_admitted, f"class {name}")
    wait_for(lambda: connection.get_object(f"{pods}/{name}")["spec"].get("nodeName"), name)
    connection.request("delete", f"{pods}/{name}", query={"gracePeriodSeconds": "0"})


def evict(connection: Connection, namespace: str, pod: Pod) -> None:
    name = pod["metadata"]["name"]
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    create(connection, path, {"metadata": {"name": name}})


def delete(connection: Connection, namespace: str, pod: Pod) -> None:  # the fake kubelet kills: 137
    connection.request("delete", f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}")


@pytest.mark.usefixtures("lost_node")
@pytest.mark.parametrize("take_down", [displace, evict, delete])
def test_a_cell_whose_pod_is_displaced_evicted_or_deleted_is_measured_again(
    site: Site, take_down: Callable[[Connection, str, Pod], None]
) -> None:
    decide = FirstHangs()
    kubelet = site.start_kubelet(decide, num_nodes=1)
    setup = site.make_setup(make_cells(1))
    running = setup.start()
    take_down(site.connection, site.namespace, decide.await_running(setup))

    running.result(DEADLINE_SECONDS)

    check_measured_again(setup, kubelet)


def test_pods_that_fail_on_infrastructure_are_made_again_up_to_the_limit(site: Site) -> None:
    busy: list[Pod] = []

    def decide(pod: Pod) -> str:
        busy.append(pod)
        return "busy"

    site.start_kubelet(decide, num_nodes=1)
    profile = make_profile(site.namespace, backoff_limit=1)
    setup = site.make_setup(make_cells(1), profile=profile)

    setup.measure()

    assert len(busy) == 2
    (result,) = setup.observed.results
    assert result.error is not None
    assert (result.status, result.error.kind, result.error.exit_code) == ("failed", "infrastructure", EXIT_TRY_AGAIN)
    assert set(setup.count_records().values()) == {1}


# API server


def test_a_run_goes_on_when_its_watches_are_cut(site: Site, faulty: FaultyServer, through: Connection) -> None:
    kubelet = site.start_kubelet(num_nodes=4, run_seconds=0.3)
    # One Job at a time: none follows before a watch has reported the end of the one before it.
    setup = site.make_setup(make_cells(12), max_in_flight=1)
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
    site: Site, faulty: FaultyServer, through: Connection
) -> None:
    kubelet = site.start_kubelet(num_nodes=4)
    setup = site.make_setup(make_cells(20))
    faults: list[Fault] = ["too-many-requests", "lost-answer", "cut-off"]
    lock = threading.Lock()

    def choose_fault(method: str, path: str) -> Fault | None:
        with lock:
            return faults[faulty.num_faults % 3] if method == "POST" and faulty.num_faults < 24 else None

    faulty.choose_fault = choose_fault

    setup.measure(through)

    check_all_once(setup, kubelet, 20)
    assert 24 <= faulty.num_faults
