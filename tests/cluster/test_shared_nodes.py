"""Cells that are compared run on one node of a real scheduler's choice, and elsewhere where that node goes away."""

from collections import defaultdict

from commands import patch
from runs import DEADLINE_SECONDS, Setup, Site, make_profile, wait_for

from bench.schema import Cell, read_placement
from bench.store import placements_prefix
from factories import make_cell, make_run


def make_pairs(number: int) -> list[Cell]:
    """Return so many blocks of two frameworks, which differ in their seed."""
    return [make_cell(seed=seed, framework=name) for name in ("pytorch", "tensorflow") for seed in range(number)]


def find_nodes(setup: Setup) -> dict[tuple[int, int], list[str]]:
    """Return the nodes on which the cells of a block ran, by seed and repeat."""
    seeds = {planned.cell.cell_id: planned.cell.seed for planned in setup.run.cells}
    found = defaultdict(list)
    for key in setup.store.list_keys(placements_prefix(setup.run.run_id)):
        placement = read_placement(setup.store.get(key))
        found[seeds[placement.cell_id], placement.repeat].append(placement.node_name)
    return dict(found)


def test_the_cells_of_a_block_run_on_one_node_and_the_blocks_on_all(site: Site) -> None:
    site.start_kubelet(num_nodes=3, run_seconds=0.5)
    setup = site.make_setup(make_pairs(4), repeats=2)

    setup.measure()

    nodes = find_nodes(setup)
    assert [len(found) for found in nodes.values()] == [2] * 8
    assert {key: len(set(found)) for key, found in nodes.items()} == dict.fromkeys(nodes, 1)
    assert len({name for found in nodes.values() for name in found}) == 3
    assert setup.observed.warnings == []


def test_a_cell_whose_node_went_away_runs_on_another_one(site: Site) -> None:
    kubelet = site.start_kubelet(num_nodes=1, run_seconds=0.5)
    profile = make_profile(site.namespace, same_node_patience_seconds=1)
    setup = site.make_setup(make_pairs(1), profile=profile)
    (lost,) = kubelet.nodes
    kubelet.may_end.clear()
    running = setup.start()
    wait_for(lambda: len(setup.list_pods()) == 2, "the pod of the second, which waits for the node of the first")
    patch(site.connection, f"/api/v1/nodes/{lost}", {"spec": {"unschedulable": True}})
    kubelet.add_node(f"other-{site.namespace}")
    kubelet.may_end.set()

    running.result(DEADLINE_SECONDS)

    assert [result.status for result in setup.observed.results] == ["ok"] * 2
    assert set(find_nodes(setup)[0, 1]) == {lost, f"other-{site.namespace}"}
    (warning,) = setup.observed.warnings
    assert f"node {lost} has not taken a cell for 1 s that is compared with one that ran there" in warning
    assert list(setup.count_records().values()) == [1, 1]


def test_a_runner_that_comes_back_sends_the_rest_of_a_comparison_to_the_node_of_its_finished_cells(site: Site) -> None:
    kubelet = site.start_kubelet(num_nodes=4, run_seconds=0.5)
    pairs = make_pairs(2)
    setup = site.make_setup(pairs[:2])
    setup.measure()  # of the whole plan only the first of each pair, as if the runner had been killed then
    setup.run = setup.run.model_copy(update={"cells": (*setup.run.cells, *make_run(cells=pairs[2:], repeats=1).cells)})
    first = {seed: nodes[0] for (seed, _), nodes in find_nodes(setup).items()}
    taints = [{"key": "other-work", "effect": "PreferNoSchedule"}]
    patch(site.connection, f"/api/v1/nodes/{first[0]}", {"spec": {"taints": taints}})

    setup.measure()

    assert {seed: set(nodes) for (seed, _), nodes in find_nodes(setup).items()} == {
        seed: {node} for seed, node in first.items()
    }
    assert list(kubelet.measured.values()) == [1] * 4
