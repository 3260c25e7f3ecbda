"""Checking manifests: what Kubernetes' schemas refuse is one message that names the place."""

from typing import Any

import pytest

from bench.errors import UserError
from runner.kubernetes.names import check_manifest


def make_manifest(**spec: Any) -> dict[str, Any]:
    container = {"name": "bench", "image": "x"}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "demo"},
        "spec": {"template": {"spec": pod}} | spec,
    }


def catch_message(manifest: dict[str, Any]) -> str:
    with pytest.raises(UserError) as caught:
        check_manifest(manifest, source="manifests/job.yaml.j2")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_manifest_that_kubernetes_allows_is_allowed() -> None:
    check_manifest(make_manifest(), source="manifests/job.yaml.j2")


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"backoffLimit": "two"}, "Job.spec.backoffLimit: "),
        ({"podFailurPolicy": {}}, "Job.spec: "),
        ({"template": {"spec": {"containers": [{"image": "x"}]}}}, "Job.spec.template.spec.containers.0: "),
        ({"podFailurePolicy": {"rules": [{"onExitCodes": {}}]}}, "Job.spec.podFailurePolicy.rules.0"),
    ],
    ids=["wrong kind of value", "unknown key", "missing key", "several"],
)
def test_an_error_names_the_template_and_the_place(spec: dict[str, Any], path: str) -> None:
    message = catch_message(make_manifest(**spec))
    assert message.startswith(f"manifests/job.yaml.j2: {path}")
    assert message.endswith("the value comes from the profile or the matrix: fix it there")


def test_a_long_value_is_not_quoted_in_full() -> None:
    assert len(catch_message(make_manifest(backoffLimit="two\n" * 250_000))) < 600
