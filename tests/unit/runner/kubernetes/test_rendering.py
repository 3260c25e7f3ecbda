"""The Jobs of a run as they are rendered."""

import json
import re
from typing import Any

import kubernetes_validate
import pytest
from importlib_resources import files

from bench.errors import FINAL_EXIT_CODES, INTERRUPTED_EXIT_CODES, UserError
from factories import make_cell, present
from job_manifests import (
    KINDS,
    KUBERNETES_VERSION,
    OWNER,
    load,
    make_full_profile,
    make_key,
    make_renderer,
    plan,
    render,
)
from runner.kubernetes.rendering import ANY_NODE, MERGE_KEYS, NodeWish
from runner.profiles.loading import load_profile
from runner.profiles.model import GpuSharing, Profile, Volume


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_a_job_is_one_restricted_pod_of_whole_cores_whose_own_end_is_final(name: str, device: str) -> None:
    profile = load(name, architecture="arm64")
    spec = render(profile, make_cell(device=device))["spec"]
    assert (spec["completions"], spec["parallelism"], spec["suspend"]) == (1, 1, False)
    assert (spec["podReplacementPolicy"], spec["backoffLimit"]) == ("Failed", 2)
    assert (spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (86_400, 86_400)
    disrupted, *others = spec["podFailurePolicy"]["rules"]
    assert disrupted == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    ended = {"containerName": "bench", "operator": "In", "values": sorted(FINAL_EXIT_CODES)}
    assert {"action": "FailJob", "onExitCodes": ended} in others

    pod = spec["template"]["spec"]
    assert (pod["restartPolicy"], pod["activeDeadlineSeconds"]) == ("Never", 600 + 900)
    assert {"initContainers", "shareProcessNamespace"} & pod.keys() == set()
    assert pod.get("runtimeClassName") == ("nvidia" if (name, device) == ("k3s", "gpu") else None)
    labels = pod["nodeSelector"]
    assert (labels["kubernetes.io/arch"], labels["kubernetes.io/os"]) == ("arm64", "linux")
    assert (pod["automountServiceAccountToken"], pod["enableServiceLinks"]) == (False, False)
    assert pod["serviceAccountName"] == "benchmatrix-cell"
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert {key for volume in pod["volumes"] for key in volume if key != "name"} == {"emptyDir"}

    (container,) = pod["containers"]
    limits = container["resources"]["limits"]
    assert container["resources"]["requests"] == limits
    assert (limits["cpu"], limits.get("nvidia.com/gpu")) == (
        str(profile.pools[device].cpus),  # type: ignore[index]
        "1" if device == "gpu" else None,
    )
    grace = {"name": "BENCH_GRACE_SECONDS", "value": str(pod["terminationGracePeriodSeconds"])}
    assert grace in container["env"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_ends_that_no_retry_makes_better_are_final() -> None:
    assert {1, 2, 6, 126, 127, 134, 137, 139} <= FINAL_EXIT_CODES


def test_a_queue_makes_a_suspended_job_with_its_label() -> None:
    manifest = render(load("kind"), queue="team.a")
    assert manifest["spec"]["suspend"] is True
    assert manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team.a"


def test_a_cell_may_be_moved_where_the_profile_allows_it() -> None:
    kept, moved = (render(load("kind", do_not_disrupt=flag))["spec"]["template"]["metadata"] for flag in (True, False))
    assert kept["annotations"] == {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "karpenter.sh/do-not-disrupt": "true",
    }
    assert "annotations" not in moved


def test_a_job_goes_with_its_owner() -> None:
    owned, free = (render(load("kind"), owner=owner)["metadata"] for owner in (OWNER, None))
    uid = OWNER.removeprefix("sweep-1/")
    assert owned["ownerReferences"] == [{"apiVersion": "batch/v1", "kind": "Job", "name": "sweep-1", "uid": uid}]
    assert "ownerReferences" not in free


def test_a_compile_cache_is_a_writable_volume_that_the_cell_is_told_of() -> None:
    cache = Volume(claim="kernels", mount_path="/kernels")
    pod = render(load("kind", compile_cache=cache))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    volume = {"name": "compile-cache", "persistentVolumeClaim": {"claimName": "kernels"}}
    assert volume in pod["volumes"]
    assert {"name": "compile-cache", "mountPath": "/kernels"} in container["volumeMounts"]
    assert {"name": "BENCH_COMPILE_CACHE", "value": "/kernels"} in container["env"]
    assert pod["securityContext"]["fsGroup"] == 65532  # of the user in images/framework.Dockerfile
    plain = render(load("kind"))["spec"]["template"]["spec"]
    assert "BENCH_COMPILE_CACHE" not in [variable["name"] for variable in plain["containers"][0]["env"]]


def test_a_cluster_that_assigns_users_is_asked_for_none() -> None:
    cache = Volume(claim="kernels", mount_path="/kernels")
    pod = render(load("openshift", compile_cache=cache))["spec"]["template"]
    assert pod["spec"]["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["metadata"]["annotations"]["openshift.io/required-scc"] == "restricted-v2"


@pytest.mark.parametrize(
    ("tmp_size", "request_size"), [("8Gi", "8256Mi"), ("1Mi", "65Mi"), ("500M", "541Mi"), ("1Ti", "1048640Mi")]
)
def test_a_cell_requests_the_disk_that_it_may_write_to(tmp_size: str, request_size: str) -> None:
    pod = render(load("kind", tmp_size=tmp_size))["spec"]["template"]["spec"]
    resources = pod["containers"][0]["resources"]
    assert resources["requests"]["ephemeral-storage"] == resources["limits"]["ephemeral-storage"] == request_size
    assert {"name": "tmp", "emptyDir": {"sizeLimit": tmp_size}} in pod["volumes"]


def test_a_requirement_of_the_pool_holds_in_each_alternative() -> None:
    pod = render(load("eks"), make_cell(device="gpu"))["spec"]["template"]["spec"]
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    keys = [rule["key"] for rule in term["matchExpressions"]]
    assert keys == ["node.kubernetes.io/instance-type", "nvidia.com/gpu.sharing-strategy", "nvidia.com/gpu.slices.gi"]


def test_autopilot_is_asked_for_nothing_that_it_refuses() -> None:
    # The keys that its admission allows, as far as its message in the issue beside the profile shows them.
    allowed = {"cloud.google.com/compute-class", "cloud.google.com/machine-family", "cloud.google.com/gke-accelerator"}
    for device in ("cpu", "gpu"):
        pod = render(load("gke-autopilot"), make_cell(device=device))["spec"]["template"]["spec"]
        assert pod["nodeSelector"].keys() - allowed == {"kubernetes.io/arch", "kubernetes.io/os"}
        assert "nodeAffinity" not in pod["affinity"]
        assert ("tolerations" in pod) == (device == "gpu")  # refused for a pod without a GPU


@pytest.mark.parametrize(
    ("profile", "timeout", "queue", "message"),
    [
        (load_profile("gke"), 600.0, None, "profile gke: images.pytorch.cpu: is missing; name the image"),
        (
            load("kind"),
            86_400.0,
            None,
            "profile kind: active_deadline_seconds: 86400 is less than the timeout_seconds of conv6-",
        ),
        *((load("kind"), 600.0, queue, "--queue: found ") for queue in ("", "a b", "x" * 64)),
    ],
)
def test_what_no_job_can_be_made_of_is_one_message(
    profile: Profile, timeout: float, queue: str | None, message: str
) -> None:
    cell = make_cell()
    with pytest.raises(UserError, match=f"^{re.escape(message)}"):
        make_renderer(profile, queue=queue).render(plan(cell, timeout_seconds=timeout), make_key(cell))


def share(profile: Profile, **sharing: GpuSharing) -> Profile:
    """Return a profile whose GPUs are shared so; `time_slicing` is written with a hyphen in a profile."""
    named = {name.replace("_", "-"): found for name, found in sharing.items()}
    return profile.model_copy(update={"gpu": present(profile.gpu).model_copy(update={"sharing": named})})


def render_pod(profile: Profile, **cell: Any) -> dict[str, Any]:
    pod: dict[str, Any] = render(profile, make_cell(**cell))["spec"]["template"]["spec"]
    return pod


def read_variables(container: dict[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}


def test_each_tenant_has_its_number_and_the_end_of_any_decides_what_the_job_does_next() -> None:
    spec = render(load("kind"), make_cell(tenants=3))["spec"]
    pod = spec["template"]["spec"]
    assert [container["name"] for container in pod["containers"]] == ["bench", "tenant-1", "tenant-2"]
    variables = [read_variables(container) for container in pod["containers"]]
    assert [found["BENCH_TENANT"] for found in variables] == ["0", "1", "2"]
    uid = {"fieldRef": {"fieldPath": "metadata.uid"}}
    assert [(found["BENCH_TENANT_GROUP"], found["BENCH_ATTEMPT"]) for found in variables] == [(uid, uid)] * 3
    assert len({found["BENCH_CELL"] for found in variables}) == 1
    assert pod["shareProcessNamespace"] is True
    _, interrupted, final = spec["podFailurePolicy"]["rules"]
    assert interrupted["onExitCodes"] == {"operator": "In", "values": sorted(INTERRUPTED_EXIT_CODES)}
    assert final["onExitCodes"] == {"operator": "In", "values": sorted(FINAL_EXIT_CODES)}


def test_tenants_share_no_folder_but_those_of_the_profile() -> None:
    pod = render_pod(make_full_profile(), tenants=2)
    mounts = [
        {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]} for container in pod["containers"]
    ]
    own = ({"/tmp": "tmp", "/dev/shm": "shm"}, {"/tmp": "tmp-1", "/dev/shm": "shm-1"})
    common = {"/data": "data", "/kernels": "compile-cache"}
    assert mounts == [folders | common for folders in own]
    volumes = {volume.pop("name"): volume for volume in pod["volumes"]}
    assert volumes.keys() == {"tmp", "tmp-1", "shm", "shm-1", "data", "compile-cache"}
    assert (volumes["tmp-1"], volumes["shm-1"]) == (volumes["tmp"], volumes["shm"])


def test_each_tenant_takes_of_a_node_what_a_cell_takes_that_is_alone_and_one_share() -> None:
    profile = share(load("gke"), time_slicing=GpuSharing(clients=(4,)))
    alone, shared = render_pod(profile, device="gpu"), render_pod(profile, device="gpu", tenants=4)
    assert len(shared["containers"]) == 4
    assert [found["resources"] for found in shared["containers"]] == [alone["containers"][0]["resources"]] * 4
    assert alone["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_a_profile_says_what_a_tenant_takes_and_what_a_share_is_called() -> None:
    sharing = GpuSharing(clients=(2,), cpus=1, memory="5Gi", resource="nvidia.com/gpu.shared")
    pod = render_pod(share(load("gke"), time_slicing=sharing), device="gpu", tenants=2)
    for container in pod["containers"]:
        limits = container["resources"]["limits"]
        assert (limits["cpu"], limits["memory"], limits["nvidia.com/gpu.shared"]) == ("1", "5Gi", "1")
        assert "nvidia.com/gpu" not in limits


def test_clients_of_mps_meet_their_server_where_the_device_plugin_puts_it() -> None:
    profile = share(load("gke"), mps=GpuSharing(clients=(2,)), time_slicing=GpuSharing(clients=(2,)))
    pod = render_pod(profile, device="gpu", tenants=2, sharing="mps")
    mounted = {mount["mountPath"] for container in pod["containers"] for mount in container["volumeMounts"]}
    assert mounted == {"/tmp"}
    assert [volume["name"] for volume in pod["volumes"]] == ["tmp", "tmp-1"]
    assert "hostIPC" not in pod
    host = share(load("gke"), mps=GpuSharing(clients=(2,), host_ipc=True))
    assert render_pod(host, device="gpu", tenants=2, sharing="mps")["hostIPC"] is True
    assert "hostIPC" not in render_pod(host, device="gpu")


@pytest.mark.parametrize("tenants", [1, 2])
def test_the_tenants_of_a_claimed_gpu_name_the_same_claim(tenants: int) -> None:
    base = load("gke")
    profile = base.model_copy(update={"gpu": present(base.gpu).model_copy(update={"request": "claim"})})
    pod = render_pod(profile, device="gpu", tenants=tenants)
    assert pod["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "benchmatrix-1-gpu"}]
    assert [found["resources"]["claims"] for found in pod["containers"]] == [[{"name": "gpu"}]] * tenants
    assert not any("nvidia.com/gpu" in found["resources"]["limits"] for found in pod["containers"])


BOTH = NodeWish(excluded=("bad", "worse"), disliked=("odd",))
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def exclude(*names: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in names]}


def render_affinity(profile: Profile, device: str, wish: NodeWish) -> dict[str, Any]:
    """Return the affinity of a cell's pod."""
    cell = make_cell(device=device)
    job = json.loads(make_renderer(profile).render(plan(cell), make_key(cell), wish))
    affinity: dict[str, Any] = job["spec"]["template"]["spec"].get("affinity", {})
    return affinity


@pytest.mark.parametrize(("name", "device"), [("gke", "gpu"), ("eks", "gpu"), ("eks", "cpu")])
def test_excluded_nodes_are_in_every_term_since_one_term_is_enough_for_a_node(name: str, device: str) -> None:
    before, after = (render_affinity(load(name), device, wish) for wish in (ANY_NODE, BOTH))
    terms = before.get("nodeAffinity", {}).get(REQUIRED, {}).get("nodeSelectorTerms", [{}])
    expected = [term | exclude("bad", "worse") for term in terms]
    assert after["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] == expected
    assert after["nodeAffinity"][PREFERRED] == [{"weight": 100, "preference": exclude("odd")}]
    assert after["podAntiAffinity"] == before["podAntiAffinity"]


NODE = "ip-10-0-1-7.eu-central-1.compute.internal"
BY_NAME = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_every_alternative_of_a_pool_gets_the_required_node_and_keeps_its_own_conditions(
    name: str, device: str
) -> None:
    before = render_affinity(load(name), device, ANY_NODE)
    after = render_affinity(load(name), device, NodeWish(node=NODE))
    terms = before.get("nodeAffinity", {}).get(REQUIRED, {})
    expected = [term | BY_NAME for term in terms.get("nodeSelectorTerms", [{}])]
    assert after["nodeAffinity"] == {REQUIRED: {"nodeSelectorTerms": expected}}
    assert after.get("podAntiAffinity") == before.get("podAntiAffinity")


def test_a_pod_without_any_affinity_gets_one() -> None:
    pool = load("kind").pools["cpu"].model_copy(update={"is_alone_on_node": False, "node_affinity": ()})
    profile = load("kind", pools={"cpu": pool})
    assert render_affinity(profile, "cpu", ANY_NODE) == {}
    expected = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [BY_NAME]}}}
    assert render_affinity(profile, "cpu", NodeWish(node=NODE)) == expected


def test_a_machine_type_is_preferred_above_all_else_and_changes_no_requirement() -> None:
    before, after = (
        render_affinity(load("eks"), "gpu", wish)["nodeAffinity"]
        for wish in (ANY_NODE, NodeWish(instance_type="g4dn.xlarge"))
    )
    by_type = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g4dn.xlarge"]}
    assert after == before | {PREFERRED: [{"weight": 100, "preference": {"matchExpressions": [by_type]}}]}


def test_the_jobs_of_one_shape_have_each_its_own_node() -> None:
    renderer, cell = make_renderer(load("kind")), make_cell()
    bodies = [renderer.render(plan(cell), make_key(cell), NodeWish(node=f"node-{number}")) for number in (1, 2)]
    assert b'"node-1"' in bodies[0]
    assert bodies[0].replace(b'"node-1"', b'"node-2"') == bodies[1]


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
    assert "team" not in render(load("gke", overlay=OVERLAY))["metadata"]["labels"]
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


@pytest.mark.parametrize(
    ("overlay", "place"),
    [
        ({"spec": {"restartPolicy": "OnFailure"}}, "spec.restartPolicy"),
        ({"spec": {"nodeSelector": {"kubernetes.io/arch": "arm64"}}}, "spec.nodeSelector.kubernetes.io/arch"),
        ({"metadata": {"labels": {"benchmatrix/pool": "a"}}}, "metadata.labels.benchmatrix/pool"),
        ({"spec": {"containers": [{"name": "bench", "env": [{"name": "BENCH_STORE", "value": "a"}]}]}}, "spec.contain"),
        (
            {"spec": {"containers": [{"name": "bench", "volumeMounts": [{"name": "a", "mountPath": "/tmp"}]}]}},
            "spec.containers.volumeMounts.name",
        ),
    ],
)
def test_a_value_of_the_tool_is_not_replaced(overlay: dict[str, Any], place: str) -> None:
    with pytest.raises(UserError) as caught:
        get_pod(overlay)
    assert str(caught.value).startswith(f"profile gke: overlay.{place}")


@pytest.mark.parametrize("spec", [{"containers": [{"env": []}]}, {"volumes": [4]}])
def test_an_overlay_that_is_no_part_of_a_pod_is_one_message(spec: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="^profile gke: overlay: is no part of a pod as Kubernetes has it: "):
        get_pod({"spec": spec})


def test_items_are_told_apart_as_in_the_schema_of_kubernetes() -> None:
    folder = files(kubernetes_validate) / "kubernetes-json-schema" / f"v{KUBERNETES_VERSION}.0-local-strict"
    found = {}
    for name in ("podspec-v1.json", "container-v1.json"):
        for key, field in json.loads((folder / name).read_text())["properties"].items():
            if "x-kubernetes-patch-merge-key" in field:
                found[key] = field["x-kubernetes-patch-merge-key"]
    refused = ("initContainers", "ephemeralContainers", "ports", "schedulingGates")
    assert {key: name for key, name in found.items() if key not in refused} == dict(MERGE_KEYS)
