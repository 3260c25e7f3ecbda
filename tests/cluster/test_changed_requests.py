"""What a cluster's policies change of a Job that it is asked for is told; what the API server fills in is not."""

import json
from typing import Any

import pytest
from commands import create
from runs import make_profile

from bench.schema import PlannedCell
from factories import make_cell
from runner.kubernetes.connection import Connection
from runner.kubernetes.doctor import describe_changes
from runner.kubernetes.names import JobKey
from runner.kubernetes.rendering import JobRenderer
from runner.profiles import BUILTIN_PROFILES


def render(namespace: str, base: str) -> dict[str, Any]:
    renderer = JobRenderer(profile=make_profile(namespace, base), store_url="s3://bucket/prefix", git_revision=None)
    planned = PlannedCell(cell=make_cell(), repeats=1, timeout_seconds=600.0)
    key = JobKey(run_id="r", cell_id=planned.cell.cell_id, number=1, retry_round=0, fingerprint="0" * 12)
    found: dict[str, Any] = json.loads(renderer.render(planned, key))
    return found


@pytest.mark.parametrize("base", BUILTIN_PROFILES)
def test_what_the_api_server_fills_in_is_no_change(connection: Connection, namespace: str, base: str) -> None:
    asked = render(namespace, base)
    made = create(connection, f"/apis/batch/v1/namespaces/{namespace}/jobs", asked, dryRun="All")
    assert describe_changes(asked, made) == ""
