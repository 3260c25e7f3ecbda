"""runner.kubernetes.rendering.queue_template: the queue that `benchmatrix setup --queue` makes."""

from decimal import Decimal
from typing import Any

import pytest

from bench.errors import UserError
from runner.kubernetes.doctor.queue_fit import fit_queue
from runner.kubernetes.node_labels import read_quantity
from runner.kubernetes.rendering.queue_template import QueueTemplate
from runner.profiles.loading import load_profile
from runner.profiles.model import Profile

V1BETA2, V1BETA1 = "kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1"


def render(profile: Profile, *quotas: str, cohort: str | None = None, version: str = V1BETA2) -> dict[str, Any]:
    """Return the manifests by kind; flavours in a list."""
    manifests = QueueTemplate.parse(profile, "nightly", quotas, cohort).render(version)
    assert {manifest["apiVersion"] for manifest in manifests} == {version}
    found: dict[str, Any] = {manifest["kind"]: manifest for manifest in manifests}
    return found | {"flavors": [item for item in manifests if item["kind"] == "ResourceFlavor"]}


def read_quotas(cluster_queue: dict[str, Any]) -> list[dict[str, Decimal]]:
    (group,) = cluster_queue["spec"]["resourceGroups"]
    return [
        {item["name"]: read_quantity(item["nominalQuota"]) for item in flavor["resources"]}
        for flavor in group["flavors"]
    ]


def test_quotas_are_what_so_many_cells_request() -> None:
    profile = load_profile("gke")
    made = render(profile, "cpu=5", "gpu=2")

    of_cpu, of_gpu = read_quotas(made["ClusterQueue"])

    assert of_cpu["cpu"] == 5 * profile.pools["cpu"].cpus
    assert of_cpu["memory"] == 5 * read_quantity(profile.pools["cpu"].memory)
    assert of_cpu["nvidia.com/gpu"] == 0
    assert of_gpu["nvidia.com/gpu"] == 8  # two cells with the four GPUs of a node
    assert of_gpu["cpu"] == 2 * profile.pools["gpu"].cpus
    assert of_cpu["ephemeral-storage"] >= 5 * read_quantity(profile.tmp_size)
    assert made["LocalQueue"]["spec"] == {"clusterQueue": "benchmatrix-nightly"}
    assert made["LocalQueue"]["metadata"]["namespace"] == "benchmatrix"


@pytest.mark.parametrize("name", ["gke", "eks"])
def test_cpu_cells_cannot_take_the_quota_of_gpu_nodes(name: str) -> None:
    made = render(load_profile(name), "cpu=0", "gpu=2")
    flavors = {item["metadata"]["name"]: item for item in made["flavors"]}
    pod: dict[str, Any] = {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}

    reasons = fit_queue(pod, made["ClusterQueue"], flavors).misfits

    assert any("taint nvidia.com/gpu:NoSchedule is not tolerated" in reason for reason in reasons)


def test_a_cohort_lends_everything_but_what_a_flavour_has_not() -> None:
    spec = render(load_profile("gke"), "cpu=1", "gpu=1", cohort="all")["ClusterQueue"]["spec"]

    assert (spec["cohortName"], spec["preemption"]) == ("all", {"reclaimWithinCohort": "Any"})
    of_cpu = spec["resourceGroups"][0]["flavors"][0]["resources"]
    assert [item["name"] for item in of_cpu if item.get("borrowingLimit") == "0"] == ["nvidia.com/gpu"]
    assert (
        render(load_profile("kind"), "cpu=1", cohort="all", version=V1BETA1)["ClusterQueue"]["spec"]["cohort"] == "all"
    )


@pytest.mark.parametrize("quota", ["cpu", "cpu=", "cpu=-1", "gpu=1", "tpu=1", "cpu=1.5"])
def test_a_quota_that_is_none_is_refused_with_what_was_expected(quota: str) -> None:
    with pytest.raises(UserError, match=r"^--quota .*: expected cpu=CELLS: how many cells"):
        QueueTemplate.parse(load_profile("kind"), "nightly", [quota], None)


def test_pools_that_nothing_tells_apart_are_refused() -> None:
    profile = load_profile("gke")
    pools = profile.pools | {"gpu": profile.pools["gpu"].model_copy(update={"tolerations": (), "node_selector": {}})}

    with pytest.raises(UserError, match=r"pools\.gpu: has no toleration and no node_selector"):
        render(profile.model_copy(update={"pools": pools}), "gpu=1")


def test_a_quota_of_gpus_that_are_claimed_is_refused() -> None:
    profile = load_profile("gke")
    assert profile.gpu is not None
    claiming = profile.model_copy(update={"gpu": profile.gpu.model_copy(update={"request": "claim"})})

    with pytest.raises(UserError, match=r"^--quota gpu=1: profile gke claims its GPUs"):
        QueueTemplate.parse(claiming, "nightly", ["gpu=1"], None)
