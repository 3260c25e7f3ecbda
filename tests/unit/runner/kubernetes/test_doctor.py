"""Checks of doctor that need no cluster."""

from pathlib import Path

import pytest

from runner.kubernetes.doctor import check_store, compare_endpoints, describe_pod_changes, explain_store_secret
from runner.profiles.loading import load_profile


@pytest.mark.parametrize(
    ("url", "keys"),
    [
        ("s3://bucket/runs", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]),
        ("gs://bucket/runs", ["GOOGLE_SERVICE_ACCOUNT_KEY"]),
        ("az://container/runs", ["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"]),
    ],
)
def test_the_keys_are_those_of_the_stores_scheme_and_without_a_store_those_of_all(url: str, keys: list[str]) -> None:
    hint = explain_store_secret("bench-store", "space", url)
    assert hint.startswith("kubectl create secret generic bench-store --namespace space, ")
    assert [word for word in hint.replace(",", "").split() if word.isupper() and "_" in word] == keys
    assert f"{url[:5]}: {keys[0]}" in explain_store_secret("bench-store", "space", None)


SHELL = {"AWS_ENDPOINT_URL": "http://10.0.0.7:9000"}
INSIDE = {"AWS_ENDPOINT_URL": "http://minio.storage:9000"}


@pytest.mark.parametrize(("url", "state"), [(None, "warning"), ("file:///tmp/x", "failed")])
def test_all_kinds_of_buckets_that_work_are_named(url: str | None, state: str) -> None:
    finding = check_store(url, {})
    assert finding.state == state
    for bucket in ("s3://BUCKET", "gs://BUCKET", "az://CONTAINER"):
        assert bucket in finding.hint


@pytest.mark.parametrize(
    ("shell", "environment", "secret_keys"),
    [
        ({}, {}, ()),
        (SHELL, SHELL, ()),
        (SHELL, INSIDE, ("AWS_ACCESS_KEY_ID",)),
        (SHELL, {}, ("AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL")),
        ({"AWS_ENDPOINT_URL_S3": "http://10.0.0.7:9000"}, {"AWS_ENDPOINT_URL_S3": "http://10.0.0.7:9000"}, ()),
        ({}, INSIDE, ()),
        ({"AWS_ENDPOINT_URL": ""}, {}, ()),
    ],
)
def test_nothing_is_said_where_both_know_a_server_or_neither(
    shell: dict[str, str], environment: dict[str, str], secret_keys: tuple[str, ...]
) -> None:
    profile = load_profile("kind").model_copy(update={"environment": environment})
    assert compare_endpoints(shell, profile, secret_keys) is None


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_a_server_that_only_this_shell_knows_of_is_named_with_the_key_to_write(name: str) -> None:
    shell = {name: "http://user:hunter2@there@10.0.0.7:9000"}
    finding = compare_endpoints(shell, load_profile("kind"), ("AWS_ACCESS_KEY_ID",))
    assert finding is not None
    assert finding.state == "failed"
    assert "AWS_ENDPOINT_URL=http://...@10.0.0.7:9000, and" in finding.message
    assert "environment: {AWS_ENDPOINT_URL: URL}" in finding.hint


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_this_machines_own_address_is_no_server_to_a_pod(host: str) -> None:
    environment = {"AWS_ENDPOINT_URL": f"http://user:hunter2@{host}:9000"}
    profile = load_profile("kind").model_copy(update={"environment": environment})
    finding = compare_endpoints(environment, profile, ())
    assert finding is not None
    assert (finding.state, f"AWS_ENDPOINT_URL=http://...@{host}:9000 in" in finding.message) == ("failed", True)


def test_a_shell_that_was_not_told_of_the_cells_server_is_told_when_the_store_is_not_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    told, untold = (check_store("s3://bucket/runs", environment) for environment in (INSIDE, {}))

    assert told.state == untold.state == "failed"
    assert told.message == untold.message
    assert "AWS_ENDPOINT_URL=http://minio.storage:9000, as the profile says" in told.hint
    assert "export AWS_ENDPOINT_URL" in told.hint
    assert told.hint.startswith(f"{untold.hint}; ")
    assert "minio" not in untold.hint


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
