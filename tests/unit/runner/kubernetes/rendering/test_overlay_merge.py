"""Merging a profile's overlay into a Job: lists by name, nothing of the tool replaced, nothing shared between Jobs."""

import json
from typing import Any

import kubernetes_validate
import pytest
from hypothesis import given
from hypothesis import strategies as st
from importlib_resources import files

from bench.errors import UserError
from factories import make_cell
from job_manifests import load, render
from runner.kubernetes.names import KUBERNETES_VERSION
from runner.kubernetes.rendering import MERGE_KEYS, merge_overlay

OVERLAY: dict[str, Any] = {
    "metadata": {"labels": {"team": "a"}, "annotations": {"sidecar.istio.io/inject": "false"}},
    "spec": {
        "runtimeClassName": "nvidia",
        "tolerations": [{"key": "team", "operator": "Exists"}],
        "nodeSelector": {"disk": "ssd"},
        "securityContext": {"runAsUser": 1000},
        "imagePullSecrets": [{"name": "registry"}],
        "volumes": [{"name": "ca", "configMap": {"name": "ca"}}],
        "containers": [
            {
                "name": "bench",
                "env": [{"name": "SSL_CERT_FILE", "value": "/ca/ca.pem"}],
                "volumeMounts": [{"name": "ca", "mountPath": "/ca", "readOnly": True}],
            }
        ],
    },
}


def get_pod(overlay: dict[str, Any], device: str = "gpu") -> dict[str, Any]:
    template: dict[str, Any] = render(load("gke", overlay=overlay), make_cell(device=device))["spec"]["template"]
    return template


def test_an_overlay_is_added_to_the_pod() -> None:
    plain, merged = get_pod({}), get_pod(OVERLAY)
    assert merged["metadata"]["labels"] == plain["metadata"]["labels"] | {"team": "a"}
    assert merged["metadata"]["annotations"].items() > plain["metadata"]["annotations"].items()
    old, new = plain["spec"], merged["spec"]
    assert new["runtimeClassName"] == "nvidia"
    assert new["tolerations"] == [*old["tolerations"], {"key": "team", "operator": "Exists"}]
    assert new["nodeSelector"] == old["nodeSelector"] | {"disk": "ssd"}
    assert new["securityContext"] == old["securityContext"] | {"runAsUser": 1000}
    assert new["volumes"] == [*old["volumes"], {"name": "ca", "configMap": {"name": "ca"}}]
    (old_container,), (container,) = old["containers"], new["containers"]
    assert container["env"] == [*old_container["env"], {"name": "SSL_CERT_FILE", "value": "/ca/ca.pem"}]
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/tmp", "/dev/shm", "/ca"]
    assert container["resources"] == old_container["resources"]


def test_the_labels_of_the_job_stay_as_they_are() -> None:
    job = render(load("gke", overlay=OVERLAY))
    assert "team" not in job["metadata"]["labels"]


def test_a_volume_of_the_tool_that_is_not_there_twice_may_be_merged_by_name() -> None:
    job = {"spec": {"template": {"spec": {"volumes": [{"name": "a", "emptyDir": {}}]}}}}
    overlay = {"spec": {"volumes": [{"name": "a", "emptyDir": {"medium": "Memory"}}]}}
    merged = merge_overlay(job, overlay, source="profile x")
    assert merged["spec"]["template"]["spec"]["volumes"] == [{"name": "a", "emptyDir": {"medium": "Memory"}}]


@pytest.mark.parametrize(
    ("overlay", "place"),
    [
        ({"spec": {"enableServiceLinks": True}}, "spec.enableServiceLinks"),
        ({"spec": {"nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}}, "spec.nodeSelector.cloud"),
        (
            {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "false"}}},
            "metadata.annotations.karpenter.sh/do-not-disrupt",
        ),
    ],
)
def test_a_value_of_the_tool_is_not_replaced(overlay: dict[str, Any], place: str) -> None:
    with pytest.raises(UserError) as caught:
        get_pod(overlay)
    assert str(caught.value).startswith(f"profile gke: overlay.{place}")


@pytest.mark.parametrize(
    "context", [{"fsGroup": 1000}, {"seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"}}]
)
def test_groups_and_a_seccomp_profile_of_the_node_may_be_given(context: dict[str, Any]) -> None:
    assert get_pod({"spec": {"securityContext": context}})["spec"]["securityContext"].items() >= context.items()


def test_items_are_told_apart_as_in_the_schema_of_kubernetes() -> None:
    folder = files(kubernetes_validate) / "kubernetes-json-schema" / f"v{KUBERNETES_VERSION}.0-local-strict"
    found = {}
    for name in ("podspec-v1.json", "container-v1.json"):
        for key, field in json.loads((folder / name).read_text())["properties"].items():
            if "x-kubernetes-patch-merge-key" in field:
                found[key] = field["x-kubernetes-patch-merge-key"]
    refused = ("initContainers", "ephemeralContainers", "ports", "schedulingGates")
    assert {key: name for key, name in found.items() if key not in refused} == dict(MERGE_KEYS)


volumes = st.lists(st.sampled_from(["a", "b", "c"]), unique=True).map(
    lambda names: [{"name": name, "emptyDir": {}} for name in names]
)


@given(base=volumes, added=volumes)
def test_a_merged_list_has_every_name_once_and_is_changed_no_further_by_merging_again(
    base: list[dict[str, Any]], added: list[dict[str, Any]]
) -> None:
    job = {"spec": {"template": {"spec": {"volumes": base}}}}
    overlay = {"spec": {"volumes": added}}
    before = json.dumps([job, overlay])
    once = merge_overlay(job, overlay, source="")
    merged = [item["name"] for item in once["spec"]["template"]["spec"]["volumes"]]
    assert sorted(merged) == sorted({item["name"] for item in base + added})
    assert merge_overlay(once, overlay, source="") == once
    assert json.dumps([job, overlay]) == before
