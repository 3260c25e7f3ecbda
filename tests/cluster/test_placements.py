"""Where attempts ran: what the runner learns from pods and nodes of a real API server, and what that costs."""

from pathlib import Path

import pytest
from runs import Setup, Site, make_cells
from users import connect_as_runner

from bench.schema import Placement, read_placement
from bench.store import parse_placement_key, parse_result_key, placement_key, placements_prefix, results_prefix
from control_plane import ControlPlane
from fake_kubelet import IMAGE_ID
from runner.kubernetes.nodes import Placements

LABELS = {
    "node.kubernetes.io/instance-type": "m6i.2xlarge",
    "topology.kubernetes.io/zone": "eu-central-1a",
    "topology.kubernetes.io/region": "eu-central-1",
    "eks.amazonaws.com/capacityType": "SPOT",
}


def read_placements(setup: Setup) -> dict[str, Placement]:
    """Return the placements of a run by their attempts."""
    found = {}
    for key in setup.store.list_keys(placements_prefix(setup.run.run_id)):
        placement, parts = read_placement(setup.store.get(key)), parse_placement_key(key)
        assert parts is not None
        assert (parts.cell_id, parts.repeat, parts.attempt) == (placement.cell_id, placement.repeat, placement.attempt)
        found[placement.attempt] = placement
    return found


def list_attempts(setup: Setup) -> set[str]:
    keys = map(parse_result_key, setup.store.list_keys(results_prefix(setup.run.run_id)))
    return {key.attempt for key in keys if key is not None}


def find_file(setup: Setup, placement: Placement) -> Path:
    """Return the file of a placement in a store that is a folder."""
    key = placement_key(placement.run_id, placement.cell_id, placement.repeat, placement.attempt)
    return Path(setup.store.url.removeprefix("file://")) / key


@pytest.mark.parametrize("may_read_nodes", [True, False])
def test_every_attempt_is_placed_without_a_request_for_its_pod(
    site: Site, control_plane: ControlPlane, may_read_nodes: bool
) -> None:
    kubelet = site.start_kubelet(run_seconds=0.5)  # a container that is never seen to run is the next test's
    kubelet.add_node(f"{site.namespace}-a", labels=LABELS, capacity={"cpu": "8"})
    setup = site.make_setup(make_cells(3), repeats=2)
    used = site.connection if may_read_nodes else connect_as_runner(site.connection, control_plane, site.namespace)
    used.num_requests.clear()

    observed = setup.measure(used)

    placements = read_placements(setup)
    assert set(placements) == list_attempts(setup)
    assert len(placements) == 6
    for placement in placements.values():
        assert (placement.node_name, placement.image_id) == (f"{site.namespace}-a", IMAGE_ID)
        assert (placement.qos_class, placement.cpu_request_cores) == ("Guaranteed", 1.0)
        assert (placement.node is not None) == may_read_nodes
        if placement.node is not None:
            assert (placement.node.instance_type, placement.node.zone) == ("m6i.2xlarge", "eu-central-1a")
            assert (placement.node.is_spot, placement.node.num_cpus) == (True, 8)
    assert used.num_requests["get nodes"] == 1
    assert used.num_requests["list pods"] == 1
    assert observed.warnings == []


def complete(setup: Setup) -> None:
    """Write what placements are missing, as a runner does at its end."""
    cluster_run = setup.make_cluster_run()
    renderer = cluster_run.make_renderer(setup.run)
    ongoing = cluster_run.make_ongoing(setup.run, renderer, setup.connection, setup.observed)
    Placements(run=ongoing).complete()


def test_a_runner_that_comes_back_writes_what_is_missing_and_changes_nothing_else(site: Site) -> None:
    site.start_kubelet(num_nodes=2)  # containers that end before anybody sees them run
    setup = site.make_setup(make_cells(3))
    setup.measure()
    complete(setup)
    first = read_placements(setup)
    assert set(first) == list_attempts(setup)

    kept, lost = sorted(first)[:2]
    find_file(setup, first[lost]).unlink()
    marked = first[kept].model_copy(update={"pod": "as-it-was"})
    find_file(setup, marked).write_bytes(marked.to_json())
    complete(setup)

    assert read_placements(setup) == first | {kept: marked}
