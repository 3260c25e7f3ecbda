"""Keys: the layout of the store, and what is no key."""

from collections.abc import Callable

import pytest

from bench.store import (
    ResultKey,
    cancelled_key,
    interrupted_key,
    meeting_key,
    meeting_prefix,
    node_fault_key,
    parse_placement_key,
    parse_result_key,
    placement_key,
    placements_prefix,
    result_key,
    results_prefix,
    run_key,
)

CELL_ID = "conv6-pytorch-cpu-train-fp32-eager-b64-0a1b2c3d"
PARSERS = (parse_result_key, parse_placement_key)


def test_keys_follow_the_layout() -> None:
    ids = ("smoke-1", CELL_ID, 3, "ab12")
    assert run_key("smoke-1") == "runs/smoke-1/run.json"
    assert results_prefix("smoke-1") == "runs/smoke-1/results/"
    assert cancelled_key("smoke-1", "ab12") == "runs/smoke-1/cancelled/ab12.json"
    assert interrupted_key(*ids) == f"runs/smoke-1/interrupted/{CELL_ID}/3-ab12.json"
    assert node_fault_key(*ids) == f"runs/smoke-1/node-faults/{CELL_ID}/3-ab12.json"
    assert meeting_prefix(*ids) == f"runs/smoke-1/tenants/{CELL_ID}/3-ab12/"
    assert meeting_key(*ids, "window") == f"runs/smoke-1/tenants/{CELL_ID}/3-ab12/window.json"
    assert meeting_key(*ids, "ready", 0) == f"runs/smoke-1/tenants/{CELL_ID}/3-ab12/ready-0.json"


@pytest.mark.parametrize(
    ("make", "prefix", "parse"),
    [
        (result_key, results_prefix("smoke-1"), parse_result_key),
        (placement_key, placements_prefix("smoke-1"), parse_placement_key),
    ],
)
def test_what_is_known_of_an_attempt_lies_under_one_name_in_several_folders(
    make: Callable[..., str], prefix: str, parse: Callable[[str], ResultKey | None]
) -> None:
    key = make("smoke-1", CELL_ID, 12, "pod-7")
    assert key == f"{prefix}{CELL_ID}/12-pod-7.json"
    assert parse(key) == ResultKey(run_id="smoke-1", cell_id=CELL_ID, repeat=12, attempt="pod-7")
    assert [other(key) for other in PARSERS if other is not parse] == [None]


@pytest.mark.parametrize(
    "key",
    [
        "runs/smoke-1/run.json",
        f"runs/smoke-1/results/{CELL_ID}/0-a.json",
        f"runs/smoke-1/results/{CELL_ID}/01-a.json",
        f"runs/smoke-1/results/{CELL_ID}/1-a.json.bak",
        f"runs/smoke-1/results/{CELL_ID}/1-a.json\n",
        f"runs/smoke-1/results/{CELL_ID}/x/1-a.json",
        "runs/smoke-1/results/no-hash/1-a.json",
        f"runs/smoke-1/results/{'a' * 55}-0a1b2c3d/1-a.json",
        f"runs/smoke-1/results/{CELL_ID}/1-a-json",
    ],
)
def test_other_keys_are_no_result_keys(key: str) -> None:
    assert parse_result_key(key) is None


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "a b", "a" * 64])
def test_names_that_could_leave_their_folder_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no run id"):
        run_key(name)
    for parts in ((name, CELL_ID, 1, "a"), ("r", name, 1, "a"), ("r", CELL_ID, 1, name), ("r", CELL_ID, 0, "a")):
        with pytest.raises(ValueError, match="is no key of a result"):
            result_key(*parts)
