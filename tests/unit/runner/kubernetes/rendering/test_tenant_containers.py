"""The pod of a cell with tenants: one container for each, in everything but its name and its folders alike."""

from typing import Any

import pytest

from bench.exit_codes import FINAL_EXIT_CODES, INTERRUPTED_EXIT_CODES
from factories import make_cell
from job_manifests import load, make_full_profile, render
from runner.profiles.model import Profile
from runner.profiles.pools import GpuSharing


def share(profile: Profile, **sharing: GpuSharing) -> Profile:
    """Return a profile whose GPUs are shared so; `time_slicing` is written with a hyphen in a profile."""
    assert profile.gpu is not None
    named = {name.replace("_", "-"): found for name, found in sharing.items()}
    return profile.model_copy(update={"gpu": profile.gpu.model_copy(update={"sharing": named})})


def render_pod(profile: Profile, **cell: Any) -> dict[str, Any]:
    pod: dict[str, Any] = render(profile, make_cell(**cell))["spec"]["template"]["spec"]
    return pod


def read_variables(container: dict[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}


def test_each_tenant_has_its_number_and_all_have_the_pods_id_as_their_group() -> None:
    pod = render_pod(load("kind"), tenants=3)
    assert [container["name"] for container in pod["containers"]] == ["bench", "tenant-1", "tenant-2"]
    variables = [read_variables(container) for container in pod["containers"]]
    assert [found["BENCH_TENANT"] for found in variables] == ["0", "1", "2"]
    uid = {"fieldRef": {"fieldPath": "metadata.uid"}}
    assert [(found["BENCH_TENANT_GROUP"], found["BENCH_ATTEMPT"]) for found in variables] == [(uid, uid)] * 3
    assert len({found["BENCH_CELL"] for found in variables}) == 1
    assert pod["shareProcessNamespace"] is True


def test_a_cell_that_is_alone_is_no_tenant() -> None:
    pod = render_pod(load("kind"))
    (container,) = pod["containers"]
    assert "shareProcessNamespace" not in pod
    assert not {"BENCH_TENANT", "BENCH_TENANT_GROUP"} & read_variables(container).keys()


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


def test_what_an_overlay_adds_to_the_container_every_tenant_has() -> None:
    variable = {"name": "MINE", "value": "added"}
    overlay: Any = {"spec": {"containers": [{"name": "bench", "env": [variable]}]}}
    pod = render_pod(load("kind", overlay=overlay), tenants=2)
    assert [variable in container["env"] for container in pod["containers"]] == [True, True]


def test_the_end_of_any_container_decides_what_the_job_does_next() -> None:
    spec = render(load("kind"), make_cell(tenants=2))["spec"]
    disrupted, interrupted, final = spec["podFailurePolicy"]["rules"]
    assert disrupted["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert interrupted["onExitCodes"] == {"operator": "In", "values": sorted(INTERRUPTED_EXIT_CODES)}
    assert final["onExitCodes"] == {"operator": "In", "values": sorted(FINAL_EXIT_CODES)}
    assert (spec["completions"], spec["parallelism"]) == (1, 1)


@pytest.mark.parametrize("tenants", [1, 2])
def test_the_tenants_of_a_claimed_gpu_name_the_same_claim(tenants: int) -> None:
    base = load("gke")
    assert base.gpu is not None
    profile = base.model_copy(update={"gpu": base.gpu.model_copy(update={"request": "claim"})})
    pod = render_pod(profile, device="gpu", tenants=tenants)
    assert pod["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "benchmatrix-1-gpu"}]
    assert [found["resources"]["claims"] for found in pod["containers"]] == [[{"name": "gpu"}]] * tenants
    assert not any("nvidia.com/gpu" in found["resources"]["limits"] for found in pod["containers"])
