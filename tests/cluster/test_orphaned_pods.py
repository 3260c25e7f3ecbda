"""Pods of cells whose Job is gone: their record is waited for, `doctor` names them, `clean` deletes the run's own."""

import pytest
from commands import CallMain, create
from doctor_calls import Examine
from orphans import orphan
from runs import DEADLINE_SECONDS, MakeSetup, Setup, StartKubelet, check_all_once, make_cells, wait_for

from bench.store import Store
from runner.kubernetes.cleanup import RunCancelled


def list_names(setup: Setup) -> set[str]:
    """Return the names of the namespace's pods, less those that are being deleted."""
    return {pod["metadata"]["name"] for pod in setup.list_pods() if "deletionTimestamp" not in pod["metadata"]}


def copy_pod(setup: Setup, name: str, run_id: str) -> None:
    """Create a copy of a pod that belongs to the run `run_id` and has that as its name."""
    (pod,) = (pod for pod in setup.list_pods() if pod["metadata"]["name"] == name)
    metadata = {"name": run_id, "labels": pod["metadata"]["labels"] | {"benchmatrix/run-id": run_id}}
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    create(setup.connection, f"/api/v1/namespaces/{setup.profile.namespace}/pods", {"metadata": metadata, "spec": spec})


def test_doctor_names_the_pods_whose_job_is_gone_and_clean_deletes_those_of_its_run(
    make_setup: MakeSetup,
    namespace: str,
    store: Store,
    start_kubelet: StartKubelet,
    call_main: CallMain,
    examine: Examine,
) -> None:
    start_kubelet(lambda pod: "hang", num_nodes=1)
    setup = make_setup(make_cells(1))
    running = setup.start()
    pod = orphan(setup)
    copy_pod(setup, pod, "of-another-run")
    words = (namespace, "--on", "current", "--store", store.url)

    finding = examine()[1]["pods without a Job"]
    assert finding["state"] == "warning"
    assert pod in finding["message"]
    assert "of-another-run" in finding["message"]
    code, _, err = call_main("clean", *words)
    assert code == 2
    assert f"error: run {namespace}: pods whose Job is gone run on: {pod}; " in err
    assert call_main("cancel", *words)[0] == 0
    with pytest.raises(RunCancelled):  # though nobody has ended what it waits for
        running.result(DEADLINE_SECONDS)
    assert list_names(setup) == {pod, "of-another-run"}

    preview = call_main("clean", *words, "--force", "--dry-run")[1]
    assert "0 Jobs and 1 pods whose Job was gone would be deleted" in preview
    assert "0 Jobs and 1 pods whose Job was gone deleted" in call_main("clean", *words, "--force")[1]
    wait_for(lambda: list_names(setup) == {"of-another-run"}, "the pod to be gone")


def test_a_job_deleted_without_its_pod_is_not_made_again_while_that_pod_measures(
    make_setup: MakeSetup, start_kubelet: StartKubelet
) -> None:
    kubelet = start_kubelet(num_nodes=2)
    kubelet.may_end.clear()
    setup = make_setup(make_cells(1))
    running = setup.start()
    pod = orphan(setup)

    (warning,) = wait_for(lambda: list(setup.observed.warnings), "a warning")
    kubelet.may_end.set()
    running.result(DEADLINE_SECONDS)

    assert f"was deleted without its pod {pod}, which runs on" in warning
    assert setup.list_jobs() == []
    check_all_once(setup, kubelet, 1)
