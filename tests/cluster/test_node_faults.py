"""Nodes that fail cells: these are measured elsewhere, later Jobs keep off, and a run stops where all nodes fail."""

from collections import Counter
from datetime import UTC, datetime

import pytest
from rich.console import Console
from runs import Observed, Site, make_cells, make_profile

from bench.store import node_fault_key
from fake_kubelet import Pod
from node_faults import make_node_fault
from runner.kubernetes.nodes import NodesAtFaultError, read_node_faults


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeats are tried again at once: how long a pause is, no test asserts."""
    monkeypatch.setattr("runner.kubernetes.session.NODE_FAULT_PAUSE_SECONDS", 0.01)


class Nodes:
    """Decides by its node how a pod ends, and counts the pods of each node."""

    def __init__(self, **ends: str) -> None:
        self.ends = ends
        self.num_pods: Counter[str] = Counter()

    def __call__(self, pod: Pod) -> str:
        node = str(pod["spec"]["nodeName"])
        self.num_pods[node] += 1
        return self.ends.get(node.rpartition("-")[2], "ok")


@pytest.mark.parametrize("fault", ["node-fault", "refused"])
def test_one_bad_node_takes_few_cells_and_none_is_lost(site: Site, fault: str) -> None:
    decide = Nodes(**{"0": fault})
    kubelet = site.start_kubelet(decide, num_nodes=3, run_seconds=0.5)
    profile = make_profile(
        site.namespace, backoff_limit=0
    )  # the Job controller waits ten seconds before it replaces a pod
    bad = next(name for name in kubelet.nodes if name.endswith("-0"))
    setup = site.make_setup(make_cells(12), profile=profile, max_in_flight=3)

    observed = setup.measure()

    assert [result.status for result in observed.results] == ["ok"] * 12
    assert set(setup.count_records().values()) == {1}
    faults = read_node_faults(site.store, setup.run.run_id)
    assert {found.node_name for found in faults} == {bad}
    # Three Jobs were in flight at once; every Job after them keeps off.
    assert decide.num_pods[bad] == len(faults) <= 3
    assert any(bad in warning and "GPU is lost" in warning or "no device" in warning for warning in observed.warnings)


def test_a_node_whose_runtime_cannot_create_the_container_is_at_fault_and_not_the_configuration(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.kubernetes.failures.CONFIGURATION_SECONDS", 0.5)
    site.start_kubelet(Nodes(**{"0": "no-device"}), num_nodes=2)
    setup = site.make_setup(make_cells(4), max_in_flight=2)

    observed = setup.measure()

    assert [result.status for result in observed.results] == ["ok"] * 4
    faults = read_node_faults(site.store, setup.run.run_id)
    assert {(found.node_name or "").rpartition("-")[2] for found in faults} == {"0"}
    assert all("unresolvable CDI devices nvidia.com/gpu=GPU-1" in found.reason for found in faults)


def test_a_run_stops_where_every_node_fails_and_goes_on_once_they_are_mended(site: Site) -> None:
    decide = Nodes(**{"0": "node-fault", "1": "node-fault"})
    kubelet = site.start_kubelet(decide, num_nodes=2)
    setup = site.make_setup(make_cells(12), max_in_flight=4)

    with pytest.raises(NodesAtFaultError, match="every node of the pool 'cpu' that took a cell is at fault") as stopped:
        setup.make_cluster_run().measure(setup.run, site.connection, Observed(), Console(quiet=True))

    assert all(name in str(stopped.value) for name in kubelet.nodes)
    assert str(stopped.value).count("GPU is lost") == 1
    assert setup.count_records() == {}
    assert setup.count_finished() == len(setup.list_jobs())  # those that had not begun were deleted
    decide.ends = {}

    observed = setup.measure()

    assert [result.status for result in observed.results] == ["ok"] * 12
    assert set(setup.count_records().values()) == {1}


def test_what_earlier_runners_saw_of_a_node_is_known_to_the_next(site: Site) -> None:
    decide = Nodes(**{"0": "node-fault"})
    kubelet = site.start_kubelet(decide, num_nodes=2)
    bad = next(name for name in kubelet.nodes if name.endswith("-0"))
    setup = site.make_setup(make_cells(6), max_in_flight=1)
    for number in range(2):
        fault = make_node_fault(setup.run, attempt=f"a{number}", node_name=bad, at=datetime.now(UTC))
        site.store.put(node_fault_key(fault.run_id, fault.cell_id, fault.repeat, fault.attempt), fault.to_json())

    observed = setup.measure()

    assert [result.status for result in observed.results] == ["ok"] * 6
    # The first Job has the bad node as its last choice, where the scheduler knows another; each after it leaves it out.
    assert decide.num_pods[bad] <= 1
    affinities = [job["spec"]["template"]["spec"]["affinity"].get("nodeAffinity", {}) for job in setup.list_jobs()]
    required = [affinity.get("requiredDuringSchedulingIgnoredDuringExecution") for affinity in affinities]
    left_out = {"key": "metadata.name", "operator": "NotIn", "values": [bad]}
    assert sum(left_out in terms["nodeSelectorTerms"][0].get("matchFields", ()) for terms in required if terms) >= 5


def test_a_pod_that_its_node_does_not_start_is_told_in_the_kubelets_words_and_given_up(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.kubernetes.failures.ASK_SECONDS", 0.5)

    def fail_to_mount(pod: Pod) -> str:
        kubelet.put_event(pod, "FailedMount", 'MountVolume.SetUp failed for volume "data": not found')
        return "stuck"

    kubelet = site.start_kubelet(fail_to_mount, num_nodes=1)
    profile = make_profile(site.namespace, start_seconds=5)
    setup = site.make_setup(make_cells(1), profile=profile)

    observed = setup.measure()

    words = 'the node does not start the pod: FailedMount: MountVolume.SetUp failed for volume "data": not found'
    assert any(warning.startswith(words) for warning in observed.warnings)
    (result,) = observed.results
    assert result.error is not None
    assert (result.status, result.error.kind, result.error.message) == ("failed", "infrastructure", words)
