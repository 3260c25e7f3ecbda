"""What a cluster's policies change of a Job that it is asked for is told; what the API server fills in is not."""

import json
from typing import Any

import pytest
from commands import create
from runs import make_profile

from bench.schema import PlannedCell
from factories import make_cell
from runner.kubernetes.connection import Connection
from runner.kubernetes.names import JobKey
from runner.kubernetes.placements import describe_changes
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


def test_every_change_is_named(connection: Connection, namespace: str) -> None:
    asked = render(namespace, "kind")
    made = create(connection, f"/apis/batch/v1/namespaces/{namespace}/jobs", asked, dryRun="All")
    made["spec"] |= {"completions": 2}
    del made["metadata"]["labels"]["benchmatrix/fingerprint"]
    pod = made["spec"]["template"]["spec"]
    pod["containers"][0]["resources"]["limits"]["cpu"] = "100m"
    pod["containers"].append({"name": "proxy", "image": "proxy:1"})

    changes = describe_changes(asked, made)

    assert "metadata.labels.benchmatrix/fingerprint was removed" in changes
    assert "spec.template.spec.containers.bench.resources.limits.cpu is '100m' instead of" in changes
    assert "spec.template.spec.containers.proxy was added" in changes
