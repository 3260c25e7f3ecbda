"""What a Job is: one pod, its resources, its rights, its node, its end."""

import pytest

from bench.exit_codes import FINAL_EXIT_CODES
from factories import make_cell
from job_manifests import KINDS, OWNER, load, render
from runner.kubernetes.rendering import (
    JobOwner,
)
from runner.profiles.builtin import BUILTIN_PROFILES
from runner.profiles.model import CompileCache


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_a_job_is_one_pod_that_is_not_restarted(name: str, device: str) -> None:
    profile = load(name)
    spec = render(profile, make_cell(device=device))["spec"]
    assert (spec["completions"], spec["parallelism"], spec["suspend"]) == (1, 1, False)
    assert (spec["podReplacementPolicy"], spec["backoffLimit"]) == ("Failed", 2)
    assert (spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (86_400, 86_400)
    pod = spec["template"]["spec"]
    assert (
        pod["restartPolicy"],
        pod["activeDeadlineSeconds"],
        pod["terminationGracePeriodSeconds"],
    ) == ("Never", 600 + 900, 60)


def test_the_container_is_told_the_grace_period_of_its_profile() -> None:
    profile = load("kind").model_copy(update={"termination_grace_period_seconds": 25})
    pod = render(profile, make_cell())["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 25
    assert {"name": "BENCH_GRACE_SECONDS", "value": "25"} in pod["containers"][0]["env"]


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_disruptions_are_not_counted_and_ends_of_the_cell_are_final(name: str, device: str) -> None:
    disrupted, *others = render(load(name), make_cell(device=device))["spec"]["podFailurePolicy"]["rules"]
    assert disrupted == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    ended = {"containerName": "bench", "operator": "In", "values": sorted(FINAL_EXIT_CODES)}
    assert {"action": "FailJob", "onExitCodes": ended} in others
    assert {1, 2, 6, 126, 127, 134, 137, 139} <= FINAL_EXIT_CODES


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_requests_are_limits_in_whole_cores(name: str, device: str) -> None:
    profile = load(name)
    pod = render(profile, make_cell(device=device))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert "initContainers" not in pod
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert container["resources"]["limits"]["cpu"] == str(profile.pools[device].cpus)  # type: ignore[index]
    assert container["resources"]["limits"]["cpu"].isdecimal()
    assert container["resources"]["limits"].get("nvidia.com/gpu") == ("1" if device == "gpu" else None)


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_a_pod_meets_the_restricted_standard_and_has_no_token(name: str, device: str) -> None:
    pod = render(load(name), make_cell(device=device))["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["serviceAccountName"] == "benchmatrix-cell"
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {key for volume in pod["volumes"] for key in volume if key != "name"} == {"emptyDir"}


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_measured_cells_never_share_a_node(name: str, device: str) -> None:
    affinity = render(load(name), make_cell(device=device))["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term == {
        "topologyKey": "kubernetes.io/hostname",
        "namespaceSelector": {},
        "labelSelector": {
            "matchLabels": {"app.kubernetes.io/name": "benchmatrix", "app.kubernetes.io/component": "cell"}
        },
    }


def test_a_cpu_cell_tolerates_no_gpu_node() -> None:
    for name in BUILTIN_PROFILES:
        assert "tolerations" not in render(load(name))["spec"]["template"]["spec"]


@pytest.mark.parametrize("queue", ["team-a", "team.a", "x" * 63])
def test_a_queue_makes_a_suspended_job_with_its_label(queue: str) -> None:
    manifest = render(load("kind"), queue=queue)
    assert manifest["spec"]["suspend"] is True
    assert manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == queue


def test_a_claim_takes_the_place_of_the_limit() -> None:
    gpu = load("gke").gpu
    assert gpu is not None
    profile = load("gke", gpu=gpu.model_copy(update={"request": "claim"}))
    pod = render(profile, make_cell(device="gpu", num_gpus=2))["spec"]["template"]["spec"]
    assert pod["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "benchmatrix-2-gpu"}]
    resources = pod["containers"][0]["resources"]
    assert resources["claims"] == [{"name": "gpu"}]
    assert {"cpu", "memory", "ephemeral-storage"} == set(resources["limits"]) == set(resources["requests"])


def test_a_cell_may_be_moved_where_the_profile_allows_it() -> None:
    kept, moved = (render(load("kind", do_not_disrupt=flag))["spec"]["template"]["metadata"] for flag in (True, False))
    assert kept["annotations"] == {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "karpenter.sh/do-not-disrupt": "true",
    }
    assert "annotations" not in moved


def test_a_job_goes_with_its_owner() -> None:
    owned, free = (
        render(load("kind"), owner=owner)["metadata"] for owner in (JobOwner.parse(f"sweep-1/{OWNER.uid}"), None)
    )
    assert owned["ownerReferences"] == [{"apiVersion": "batch/v1", "kind": "Job", "name": "sweep-1", "uid": OWNER.uid}]
    assert "ownerReferences" not in free


def test_a_compile_cache_is_a_writable_volume_that_the_cell_is_told_of() -> None:
    cache = CompileCache(claim="kernels", mount_path="/kernels")
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
    cache = CompileCache(claim="kernels", mount_path="/kernels")
    pod = render(load("openshift", compile_cache=cache))["spec"]["template"]
    assert pod["spec"]["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["metadata"]["annotations"]["openshift.io/required-scc"] == "restricted-v2"


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_a_pod_keeps_off_machines_that_cannot_run_its_image(name: str, device: str) -> None:
    for architecture in ("amd64", "arm64"):
        job = render(load(name, architecture=architecture), make_cell(device=device))
        labels = job["spec"]["template"]["spec"]["nodeSelector"]
        assert (labels["kubernetes.io/arch"], labels["kubernetes.io/os"]) == (architecture, "linux")


@pytest.mark.parametrize(
    ("tmp_size", "request_size"), [("8Gi", "8256Mi"), ("1Mi", "65Mi"), ("500M", "541Mi"), ("1Ti", "1048640Mi")]
)
def test_a_cell_requests_the_disk_that_it_may_write_to(tmp_size: str, request_size: str) -> None:
    pod = render(load("kind", tmp_size=tmp_size))["spec"]["template"]["spec"]
    resources = pod["containers"][0]["resources"]
    assert resources["requests"]["ephemeral-storage"] == resources["limits"]["ephemeral-storage"] == request_size
    assert {"name": "tmp", "emptyDir": {"sizeLimit": tmp_size}} in pod["volumes"]


def test_only_gpu_pods_of_k3s_name_a_runtime_class() -> None:
    gpu, cpu = (render(load("k3s"), make_cell(device=name))["spec"]["template"]["spec"] for name in ("gpu", "cpu"))
    assert gpu["runtimeClassName"] == "nvidia"
    assert "runtimeClassName" not in cpu


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
