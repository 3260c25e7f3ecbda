"""Keys: the layout of the store, and what is no key."""

import pytest

from bench.store import (
    ResultKey,
    cancelled_key,
    cancelled_prefix,
    meeting_key,
    meeting_prefix,
    node_fault_key,
    node_faults_prefix,
    parse_node_fault_key,
    parse_placement_key,
    parse_result_key,
    placement_key,
    placements_prefix,
    result_key,
    results_prefix,
    run_key,
    tenants_prefix,
)

CELL_ID = "conv6-pytorch-cpu-train-fp32-eager-b64-0a1b2c3d"


def test_keys_follow_the_layout() -> None:
    assert run_key("smoke-1") == "runs/smoke-1/run.json"
    assert results_prefix("smoke-1") == "runs/smoke-1/results/"
    assert cancelled_key("smoke-1", "ab12") == "runs/smoke-1/cancelled/ab12.json"
    assert result_key("smoke-1", CELL_ID, 3, "ab12") == f"runs/smoke-1/results/{CELL_ID}/3-ab12.json"


def test_a_placement_lies_beside_the_results_under_the_same_name() -> None:
    key = placement_key("smoke-1", CELL_ID, 3, "ab12")
    assert key == f"runs/smoke-1/placements/{CELL_ID}/3-ab12.json"
    assert key.startswith(placements_prefix("smoke-1"))
    assert parse_placement_key(key) == ResultKey(run_id="smoke-1", cell_id=CELL_ID, repeat=3, attempt="ab12")
    assert parse_result_key(key) is None
    assert parse_placement_key(result_key("smoke-1", CELL_ID, 3, "ab12")) is None


def test_a_node_fault_lies_beside_the_results_under_the_same_name() -> None:
    key = node_fault_key("smoke-1", CELL_ID, 3, "ab12")
    assert key == f"runs/smoke-1/node-faults/{CELL_ID}/3-ab12.json"
    assert key.startswith(node_faults_prefix("smoke-1"))
    assert parse_node_fault_key(key) == ResultKey(run_id="smoke-1", cell_id=CELL_ID, repeat=3, attempt="ab12")
    assert parse_result_key(key) is None


def test_tenants_meet_in_a_folder_of_their_group() -> None:
    assert meeting_prefix("smoke-1", CELL_ID, 3, "ab12") == f"runs/smoke-1/tenants/{CELL_ID}/3-ab12/"
    key = meeting_key("smoke-1", CELL_ID, 3, "ab12", "window")
    assert key == f"runs/smoke-1/tenants/{CELL_ID}/3-ab12/window.json"
    key = meeting_key("smoke-1", CELL_ID, 3, "ab12", "ready", 7)
    assert key == f"runs/smoke-1/tenants/{CELL_ID}/3-ab12/ready-7.json"
    assert key.startswith(tenants_prefix("smoke-1"))
    assert parse_result_key(key) is None
    with pytest.raises(ValueError, match="no key of a result"):
        meeting_prefix("smoke-1", CELL_ID, 0, "ab12")


def test_a_result_key_is_parsed_into_its_parts() -> None:
    key = f"runs/smoke-1/results/{CELL_ID}/12-pod-7.json"
    assert parse_result_key(key) == ResultKey(run_id="smoke-1", cell_id=CELL_ID, repeat=12, attempt="pod-7")


@pytest.mark.parametrize(
    "key",
    [
        "runs/smoke-1/run.json",
        f"runs/smoke-1/results/{CELL_ID}/1.json",
        f"runs/smoke-1/results/{CELL_ID}/0-a.json",
        f"runs/smoke-1/results/{CELL_ID}/01-a.json",
        f"runs/smoke-1/results/{CELL_ID}/1-a.json.bak",
        f"runs/smoke-1/results/{CELL_ID}/1-a.json\n",
        f"runs/smoke-1/results/{CELL_ID}/x/1-a.json",
        f"runs/smoke/1/results/{CELL_ID}/1-a.json",
        f"x/runs/smoke-1/results/{CELL_ID}/1-a.json",
        "runs/smoke-1/results/no-hash/1-a.json",
        "",
    ],
)
def test_foreign_keys_are_no_result_keys(key: str) -> None:
    assert parse_result_key(key) is None


@pytest.mark.parametrize(
    ("run_id", "cell_id", "repeat", "attempt"),
    [
        ("../x", CELL_ID, 1, "a"),
        ("r", "../x", 1, "a"),
        ("r", CELL_ID, 0, "a"),
        ("r", CELL_ID, 1, "A/b"),
        ("", CELL_ID, 1, "a"),
    ],
)
def test_result_keys_of_hostile_parts_are_refused(run_id: str, cell_id: str, repeat: int, attempt: str) -> None:
    with pytest.raises(ValueError, match="is no key of a result"):
        result_key(run_id, cell_id, repeat, attempt)


@pytest.mark.parametrize("run_id", ["", "..", "a/b", "A", "a b"])
def test_run_keys_of_hostile_names_are_refused(run_id: str) -> None:
    for make_key in (run_key, results_prefix, cancelled_prefix):
        with pytest.raises(ValueError, match="is no run id"):
            make_key(run_id)
