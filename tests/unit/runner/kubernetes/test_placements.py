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
from runner.kubernetes.placements import Placements


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
