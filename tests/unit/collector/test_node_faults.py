"""Faults of nodes: read beside the results, and told per node."""

from datetime import timedelta

from bench.schema import NodeFault, Run
from bench.store import Store, node_fault_key
from collector.facts import describe_node_faults, list_facts
from collector.results.load import load_run
from factories import START, make_result, make_run, put_documents
from node_faults import make_node_fault


def put(store: Store, run: Run, *faults: NodeFault) -> None:
    put_documents(store, run, [make_result()])
    for fault in faults:
        key = node_fault_key(fault.run_id, fault.cell_id, fault.repeat, fault.attempt)
        store.put(key, fault.to_json())


def test_the_report_names_the_nodes_and_what_came_of_them(store: Store) -> None:
    run = make_run(executor="kubernetes")
    later = START + timedelta(minutes=5)
    put(
        store,
        run,
        make_node_fault(run, attempt="a2", node_name="bad", reason="GPU is lost", at=later, is_left_out=True),
        make_node_fault(run, attempt="a1", node_name="bad", reason="disk full"),
        make_node_fault(run, attempt="a3", node_name=None, reason="no pod is left"),
    )

    collection = load_run(store, run.run_id)

    assert describe_node_faults(collection.node_faults) == [
        "bad: 2 attempts could not begin, the last at 2026-03-01 12:05 UTC: GPU is lost; left out of later Jobs for an "
        "hour",
        "a node of unknown name: 1 attempt could not begin, the last at 2026-03-01 12:00 UTC: no pod is left",
    ]
    assert dict(list_facts(collection))["nodes at fault"].startswith("bad: 2 attempts")
    assert collection.skipped == ()


def test_a_fault_that_cannot_be_read_or_lies_under_another_key_is_named(store: Store) -> None:
    run = make_run(executor="kubernetes")
    put(store, run, make_node_fault(run))
    good, *_ = store.list_keys(f"runs/{run.run_id}/node-faults/")
    damaged, moved = good.replace("-a1", "-b1"), good.replace("-a1", "-c1")
    store.put(damaged, b"{}")
    store.put(moved, store.get(good))

    collection = load_run(store, run.run_id)

    assert [fault.attempt for fault in collection.node_faults] == ["a1"]
    assert sorted(document.key for document in collection.skipped) == sorted([damaged, moved])
