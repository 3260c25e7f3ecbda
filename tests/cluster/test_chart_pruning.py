"""The chart under Argo CD, which tracks by label and prunes: what a scheduled run makes is left alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import helm_python
from commands import create
from releases import FULLNAME, KINDS, RELEASE, find_pod_of, make_restricted_namespace, trigger

from bench.schema import PlannedCell
from chart import AFFINITY, CHART, OVERLAY, SPREAD, Manifest, make_values, render
from factories import make_cell
from runner.kubernetes.connection import Connection
from runner.kubernetes.names import JobKey
from runner.kubernetes.rendering import JobRenderer
from runner.profiles.loading import load_profile

TRACKING_LABEL = "app.kubernetes.io/instance"


def prune(connection: Connection, namespaces: list[str], manifests: list[Manifest]) -> set[str]:
    """Delete what carries the release's tracking label and is in no manifest, and return the names.

    Argo CD spares what has an owner (`isRoot` in
    https://github.com/argoproj/argo-cd/blob/v3.0.0/controller/cache/cache.go); this does not, and so asks for more.
    """
    known = {(item["kind"].lower().replace("policy", "policie") + "s", item["metadata"]["name"]) for item in manifests}
    pruned = set()
    for path in (path.format(f"namespaces/{namespace}") for namespace in namespaces for path in KINDS):
        for item in connection.list_items(path):
            name, labels = item["metadata"]["name"], item["metadata"].get("labels", {})
            if labels.get(TRACKING_LABEL) == RELEASE and (path.rpartition("/")[2], name) not in known:
                connection.request("delete", f"{path}/{name}", query={"propagationPolicy": "Background"})
                pruned.add(name)
    return pruned


def submit_cell(connection: Connection, runner: dict[str, Any], folder: Path) -> str:
    """Create the Job of a cell as the runner in this pod would, and return its path."""
    (folder / "profile.yaml").write_text(runner["metadata"]["annotations"]["benchmatrix/profile"])
    profile = load_profile(str(folder / "profile.yaml"))
    cell = make_cell()
    planned = PlannedCell(cell=cell, repeats=1, timeout_seconds=600.0)
    key = JobKey(run_id="night", cell_id=cell.cell_id, number=1, retry_round=0)
    body = JobRenderer(profile=profile, store_url="s3://bucket/prefix", git_revision=None).render(planned, key)
    path = f"/apis/batch/v1/namespaces/{profile.namespace}/jobs"
    create(connection, path, json.loads(body))
    return f"{path}/{key.job_name}"


def test_a_run_under_way_outlives_the_pruning_of_what_is_not_in_git(
    connection: Connection, place: str, helm: Callable[[str], helm_python.Config], tmp_path: Path
) -> None:
    config, cells = helm(place), f"{place}-cells"
    make_restricted_namespace(connection, cells)
    values = make_values(
        cells__namespace=cells,
        cells__createNamespace=False,
        annotations={"argocd.argoproj.io/sync-wave": "1"},
        assignedUser=True,
        runner__affinity=AFFINITY,
        runner__topologySpreadConstraints=SPREAD,
        runner__overlay={"spec": {key: OVERLAY["spec"][key] for key in ("volumes", "containers")}},
    )
    config.install(CHART, RELEASE, values)
    trigger(connection, place, "night")
    runner = find_pod_of(connection, place, "night")
    cell = submit_cell(connection, runner, tmp_path)
    pod = find_pod_of(connection, cells, cell.rpartition("/")[2])
    stray = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "stray", "labels": {TRACKING_LABEL: RELEASE}}}
    create(connection, f"/api/v1/namespaces/{cells}/secrets", stray)

    pruned = prune(connection, [place, cells], render(values, namespace=place))

    assert pruned == {"stray"}
    paths = (
        cell,
        f"/apis/batch/v1/namespaces/{place}/jobs/night",
        f"/apis/batch/v1/namespaces/{place}/cronjobs/{FULLNAME}",
        f"/api/v1/namespaces/{cells}/pods/{pod['metadata']['name']}",
        f"/api/v1/namespaces/{place}/pods/{runner['metadata']['name']}",
    )
    assert [path for path in paths if "deletionTimestamp" in connection.get_object(path)["metadata"]] == []
    config.uninstall(RELEASE)
    for path in (cell, f"/api/v1/namespaces/{cells}"):  # the namespace was there before the release
        assert "deletionTimestamp" not in connection.get_object(path)["metadata"]
    connection.request("delete", f"/api/v1/namespaces/{cells}")
