"""What a cluster changed of a request is named; what the API server fills in or writes otherwise is not."""

from typing import Any

import pytest

from runner.kubernetes.placements import describe_changes

BENCH = {"name": "bench", "image": "a:1", "cpu": "1000m"}
ASKED: dict[str, Any] = {"spec": {"completions": 1, "suspend": False, "containers": [BENCH]}}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"suspend": True}, "spec.suspend is True instead of False"),
        ({"completions": "x" * 100}, f"spec.completions is '{'x' * 58}… instead of 1"),
        ({"containers": []}, "spec.containers.bench was removed"),
        (
            {"containers": [BENCH | {"image": "b:1"}]},
            "spec.containers.bench.image is 'b:1' instead",
        ),
        ({"containers": [BENCH | {"cpu": "1"}, {"name": "p"}]}, "spec.containers.p was added"),
        ({"containers": [BENCH | {"cpu": {}}]}, "spec.containers.bench.cpu is {} instead of"),
        ({"initContainers": [{"name": "p"}]}, "spec.initContainers.p was added"),
        ({"containers": "none"}, "spec.containers is 'none' instead of"),
        ({"containers": [BENCH | {"name": ["x"]}]}, "spec.containers[0].name is ['x'] instead of 'bench'"),
        ({"containers": [BENCH | {"name": {"a": 1}}]}, "spec.containers[0].name is {'a': 1} instead of 'bench'"),
    ],
)
def test_a_change_is_named_with_both_values(spec: dict[str, Any], words: str) -> None:
    assert describe_changes(ASKED, {"spec": ASKED["spec"] | spec}).startswith(words)


def test_what_is_filled_in_left_out_or_written_otherwise_is_no_change() -> None:
    container = {"name": "bench", "image": "a:1", "cpu": "1", "pullPolicy": "Always"}
    made = {"metadata": {"uid": "u"}, "spec": {"completions": 1, "containers": [container], "mode": "NonIndexed"}}
    assert describe_changes(ASKED, made) == ""


def test_of_many_changes_the_first_are_named() -> None:
    assert describe_changes({str(number): 1 for number in range(9)}, {}).endswith("4 was removed and 4 more")
