"""Where attempts ran, also where a policy changed what their pods request."""

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
from runner.kubernetes.nodes import Placements


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
