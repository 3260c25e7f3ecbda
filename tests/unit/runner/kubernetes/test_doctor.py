"""Checks of doctor, and of rights, that need no cluster."""

from types import SimpleNamespace
from typing import Any

import pytest

from bench.registry import FRAMEWORKS
from runner.kubernetes.connection import ApiError
from runner.kubernetes.doctor import (
    MIN_DRIVERS,
    check_cells_endpoint,
    check_store,
    describe_pod_changes,
    read_image_cuda,
)
from runner.kubernetes.setup import RUN_PERMISSIONS, check_permissions
from runner.profiles.loading import load_profile


@pytest.mark.parametrize(("url", "state"), [(None, "warning"), ("file:///tmp/x", "failed")])
def test_all_kinds_of_buckets_that_work_are_named(url: str | None, state: str) -> None:
    finding = check_store(url)
    assert finding.state == state
    for bucket in ("s3://BUCKET", "gs://BUCKET", "az://CONTAINER"):
        assert bucket in finding.hint


@pytest.mark.parametrize(
    ("environment", "secret_keys", "is_told"),
    [
        ({}, ["AWS_ACCESS_KEY_ID"], True),
        ({}, ["AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL"], False),
        ({"AWS_ENDPOINT_URL": "http://minio.storage:9000"}, [], False),
    ],
)
def test_a_server_that_only_this_shell_knows_of_is_named_with_the_key_to_write(
    environment: dict[str, str], secret_keys: list[str], is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://user:hunter2@10.0.0.7:9000")
    profile = load_profile("kind").model_copy(update={"environment": environment})
    subject: Any = SimpleNamespace(
        profile=profile,
        namespace="space",
        store_url="s3://bucket/runs",
        connection=SimpleNamespace(find_object=lambda path: {"data": dict.fromkeys(secret_keys, "x")}),
    )
    found = list(check_cells_endpoint(subject))
    assert bool(found) == is_told
    for finding in found:
        assert "AWS_ENDPOINT_URL=http://...@10.0.0.7:9000, and" in finding.message
        assert "environment: {AWS_ENDPOINT_URL: URL}" in finding.hint


def test_what_a_policy_changes_that_decides_what_is_measured_is_named() -> None:
    resources = {kind: {"cpu": "1000m", "memory": "3Gi"} for kind in ("requests", "limits")}
    bench = {"name": "bench", "image": "a:1", "env": [{"name": "A"}], "resources": resources}
    asked = {"spec": {"containers": [bench]}}
    filled = bench | {"resources": {kind: {"cpu": "1", "memory": "3072Mi"} for kind in resources}, "tty": False}
    assert describe_pod_changes(asked, {"spec": {"containers": [filled], "priority": 0}}) == ""

    less = resources | {"limits": {"cpu": "500m", "memory": "3Gi"}}
    changed = bench | {"image": "b:1", "env": [{"name": "A"}, {"name": "B"}], "resources": less}
    assert describe_pod_changes(asked, {"spec": {"containers": [changed, {"name": "proxy"}]}}) == (
        "the container proxy was added; the image of bench is b:1 instead of a:1; bench has the variable B; "
        "limits of bench: 500m cpu instead of 1000m"
    )


def test_the_oldest_driver_is_known_for_the_cuda_of_each_image() -> None:
    assert {read_image_cuda(framework)[0] for framework in FRAMEWORKS} <= MIN_DRIVERS.keys()


@pytest.mark.parametrize("status", [403, 404])
def test_a_cluster_that_does_not_say_what_a_user_may_do_refuses_nothing(status: int) -> None:
    def refuse(*_: object, **__: object) -> bytes:
        raise ApiError(status, "", "no")

    connection: Any = SimpleNamespace(request=refuse)
    check_permissions(connection, "lab", RUN_PERMISSIONS, "a run")
