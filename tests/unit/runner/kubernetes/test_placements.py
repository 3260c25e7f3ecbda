"""Where attempts ran, and pods of which that cannot be recorded: others may create pods with a run's labels."""

from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from bench.schema import read_placement
from bench.store import placements_prefix
from cluster_objects import load_pod
from job_manifests import RUN_ID
from ongoing_runs import make_ongoing
from runner.kubernetes.connection import ApiError
from runner.kubernetes.placements import Placements, describe_changes


class NodelessServer:
    """Says of every node that it is gone."""

    def get_object(self, *_: object, **__: object) -> Any:
        raise ApiError(HTTPStatus.NOT_FOUND, "NotFound", "no such node")


@pytest.fixture
def placements(tmp_path: Path) -> Placements:
    return Placements(run=make_ongoing(tmp_path, connection=NodelessServer()))


@pytest.mark.parametrize(
    ("request_of_cpu", "cores"), [("0", None), ("-1", None), ("", None), ("500m", 0.5), ("1n", 1e-9)]
)
def test_a_pod_whose_request_a_policy_changed_is_placed(
    placements: Placements, request_of_cpu: str, cores: float | None
) -> None:
    assert placements.write(replace(load_pod("running"), cpu_request=request_of_cpu)) == ""

    (key,) = placements.run.store.list_keys(placements_prefix(RUN_ID))
    assert read_placement(placements.run.store.get(key)).cpu_request_cores == cores


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"number": 0}, "its label benchmatrix/repeat is no number of a repeat"),
        ({"cell_id": ""}, "cell_id: "),
        ({"cell_id": "X y"}, "cell_id: "),
    ],
)
def test_a_pod_of_no_cell_is_named_and_passed_by(placements: Placements, changes: dict[str, Any], fault: str) -> None:
    pod = replace(load_pod("running"), **changes)

    words = placements.write(pod)

    assert words.startswith(f"pod {pod.name} has the labels of this run, and where it runs is not recorded: {fault}")
    assert list(placements.run.store.list_keys(placements_prefix(RUN_ID))) == []


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
