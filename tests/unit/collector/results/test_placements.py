"""Where attempts ran on a cluster: read beside the results, joined by attempt, unknown where nothing is there."""

from typing import Any

import pandas as pd

from bench.schema import Node, Placement, Result
from bench.store import Store, placement_key
from collector.analysis import analyze_run
from collector.facts import list_doubts
from collector.results.collection import Collection
from collector.results.frames import PLACEMENT_COLUMNS
from collector.results.load import load_run
from collector.tables.environments import make_shared_environment_table
from factories import make_placement, make_result, make_run, put_documents

T4 = Node(
    instance_type="n1-standard-8", region="europe-west4", zone="europe-west4-a", is_spot=True, kubelet_version="v1.36.2"
)
IMAGE_ID = f"r.example/pytorch@sha256:{'5' * 64}"


def put_placement(store: Store, placement: Placement, **key: Any) -> None:
    parts = placement.model_dump(include={"run_id", "cell_id", "repeat", "attempt"}) | key
    store.put(placement_key(**parts), placement.to_json())


def load(store: Store, results: list[Result], executor: str = "kubernetes") -> Collection:
    run = make_run(repeats=len(results), executor=executor)
    put_documents(store, run, results)
    return load_run(store, run.run_id)


def list_known(collection: Collection, row: int) -> dict[str, Any]:
    return dict(collection.results.loc[row, list(PLACEMENT_COLUMNS)].dropna())


def test_a_result_has_the_placement_of_its_attempt_and_no_other(store: Store) -> None:
    placed, other = make_result(repeat=1, attempt="p1"), make_result(repeat=2, attempt="p2")
    put_placement(store, make_placement(placed, T4, image_id=IMAGE_ID))
    put_placement(store, make_placement(make_result(repeat=2, attempt="interrupted"), T4))

    collection = load(store, [placed, other])

    assert list_known(collection, 0) == {
        "instance_type": "n1-standard-8",
        "region": "europe-west4",
        "zone": "europe-west4-a",
        "is_spot": True,
        "image_id": IMAGE_ID,
        "kubelet_version": "v1.36.2",
    }
    assert list_known(collection, 1) == {}
    assert collection.skipped == ()


def test_placements_that_are_damaged_or_of_another_attempt_are_named(store: Store) -> None:
    result = make_result(attempt="p1")
    put_placement(store, make_placement(result, T4), attempt="p2")
    store.put(placement_key(result.run_id, result.cell_id, 1, "p3"), b"{")
    collection = load(store, [result])
    assert list_known(collection, 0) == {}
    reasons = [document.reason for document in collection.skipped]
    assert "the placement is of another attempt than its key says" in reasons
    assert any(reason.startswith("no JSON") for reason in reasons)


def test_the_environments_say_on_which_machines_they_were(store: Store) -> None:
    results = [make_result(repeat=repeat, attempt=f"p{repeat}") for repeat in (1, 2, 3)]
    other = T4.model_copy(update={"zone": "europe-west4-b", "is_spot": False})
    for result, node in zip(results[:2], (T4, other), strict=True):  # of the third, nothing is known
        put_placement(store, make_placement(result, node, image_id=IMAGE_ID))
    table = make_shared_environment_table(analyze_run(load(store, results)))
    rows = {row[0]: row[1] for row in table.format_rows()}
    assert rows["machine type"] == "n1-standard-8"
    assert rows["zone"] == "europe-west4-a, europe-west4-b"
    assert rows["spot"] == "1 yes, 1 no"
    assert rows["image that ran"] == IMAGE_ID
    assert not pd.isna(rows["kubelet"])


def test_containers_beside_the_measurement_are_in_the_results_and_a_reason_for_doubt(store: Store) -> None:
    results = [make_result(repeat=repeat, attempt=f"p{repeat}") for repeat in (1, 2, 3)]
    put_placement(store, make_placement(results[0], T4, other_containers=("logs", "proxy")))
    put_placement(store, make_placement(results[1], T4, other_containers=("proxy",)))
    put_placement(store, make_placement(results[2], T4))

    collection = load(store, results)

    assert [*collection.results["other_containers"].fillna("")] == ["logs, proxy", "proxy", ""]
    (doubt,) = (doubt for doubt in list_doubts(analyze_run(collection)) if doubt.code == "other-containers")
    assert (doubt.severity, doubt.count) == ("beware", 2)
    assert "(logs and proxy)" in doubt.text
