"""Pods of cells whose Job is gone: `status` and `doctor` name them, `clean` deletes those of the run and no others."""

from collections.abc import Callable
from typing import Any

import pytest
from commands import CallMain, create
from doctor_calls import Examine
from orphans import orphan
from runs import DEADLINE_SECONDS, Setup, make_cells, wait_for

from bench.store import Store
from fake_kubelet import FakeKubelet
from runner.kubernetes.cleanup import RunCancelled
from runner.kubernetes.connection import Connection

StartKubelet = Callable[..., FakeKubelet]
Orphaned = tuple[Setup, Any, str]


def list_names(setup: Setup) -> set[str]:
    """Return the names of the namespace's pods, less those that are being deleted."""
    return {pod["metadata"]["name"] for pod in setup.list_pods() if "deletionTimestamp" not in pod["metadata"]}


def copy_pod(setup: Setup, name: str, new_name: str, **labels: str) -> None:
    """Make a pod by hand that is as another one but for its name and some labels; an empty one is left out."""
    (pod,) = (pod for pod in setup.list_pods() if pod["metadata"]["name"] == name)
    found = {**pod["metadata"]["labels"], **{key.replace("__", "/"): value for key, value in labels.items()}}
    metadata = {"name": new_name, "labels": {key: value for key, value in found.items() if value}}
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    create(setup.connection, f"/api/v1/namespaces/{setup.profile.namespace}/pods", {"metadata": metadata, "spec": spec})


def start_with_orphan(connection: Connection, namespace: str, store: Store, start_kubelet: StartKubelet) -> Orphaned:
    start_kubelet(lambda pod: "hang", num_nodes=1)
    setup = Setup.make(connection, namespace, store, make_cells(1))
    running = setup.start()
    return setup, running, orphan(setup)


def start_beside_others(connection: Connection, namespace: str, store: Store, start: StartKubelet) -> Orphaned:
    """Return a run that waits for its pod whose Job is gone, beside pods that `clean` has to leave alone."""
    setup, running, pod = start_with_orphan(connection, namespace, store, start)
    copy_pod(setup, pod, "of-another-run", **{"benchmatrix__run-id": "another"})
    copy_pod(setup, pod, "of-no-job", **{"batch.kubernetes.io__controller-uid": ""})
    return setup, running, pod


def test_pods_whose_job_is_gone_are_named(
    connection: Connection,
    namespace: str,
    store: Store,
    start_kubelet: StartKubelet,
    call_main: CallMain,
    examine: Examine,
) -> None:
    _, _, pod = start_beside_others(connection, namespace, store, start_kubelet)
    place = ("--on", "current", "--namespace", namespace)

    finding = examine()[1]["pods without a Job"]
    assert finding["state"] == "warning"
    assert pod in finding["message"]
    assert "of-another-run" in finding["message"]
    assert "of-no-job" not in finding["message"]
    assert call_main("cancel", namespace, *place, "--store", store.url)[0] == 0


def test_clean_deletes_the_pods_of_the_run_whose_job_is_gone_and_no_others(
    connection: Connection, namespace: str, store: Store, start_kubelet: StartKubelet, call_main: CallMain
) -> None:
    setup, running, pod = start_beside_others(connection, namespace, store, start_kubelet)
    place = ("--on", "current", "--namespace", namespace)

    code, _, err = call_main("clean", namespace, *place)
    assert code == 2
    assert f"error: run {namespace}: pods whose Job is gone run on: {pod}; " in err
    assert call_main("cancel", namespace, *place, "--store", store.url)[0] == 0
    with pytest.raises(RunCancelled):  # though nobody has ended what it waits for
        running.result(DEADLINE_SECONDS)
    assert list_names(setup) == {pod, "of-another-run", "of-no-job"}

    preview = call_main("clean", namespace, *place, "--force", "--dry-run")[1]
    assert "0 Jobs and 1 pods whose Job was gone would be deleted" in preview
    code, out, _ = call_main("clean", namespace, *place, "--force")
    assert (code, out) == (
        0,
        f"run {namespace} in namespace {namespace}: 0 Jobs and 1 pods whose Job was gone deleted; results stay in the "
        "store\n",
    )
    wait_for(lambda: list_names(setup) == {"of-another-run", "of-no-job"}, "the pod to be gone")
