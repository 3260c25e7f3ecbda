"""The Jobs that pull images: where their pods go, what they are allowed, and when they end by themselves."""

from typing import Any

import pytest

from factories import make_cell
from job_manifests import IMAGE, KINDS, OWNER, RUN_ID, load, make_full_profile, render
from runner.kubernetes.rendering.prepull_job import list_images, make_prepull_job, select_prepull

Manifest = dict[str, Any]


def make_pod(cells: list[Manifest]) -> Manifest:
    pod: Manifest = make_prepull_job(cells, "prepull-1", 600)["spec"]["template"]["spec"]
    return pod


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_a_pod_goes_where_the_cells_of_its_pool_go(name: str, device: str) -> None:
    cell = render(load(name), make_cell(device=device))
    pod, of_cell = make_pod([cell]), cell["spec"]["template"]["spec"]
    for key in ("nodeSelector", "tolerations", "imagePullSecrets", "serviceAccountName", "securityContext"):
        assert pod.get(key) == of_cell.get(key)
    assert pod["affinity"].get("nodeAffinity") == of_cell["affinity"].get("nodeAffinity")


def test_a_pod_is_allowed_as_little_as_a_cell_and_takes_little() -> None:
    profile = make_full_profile()
    cell = render(profile, make_cell(device="gpu"), queue="team-a")
    pod, (measuring,) = make_pod([cell]), cell["spec"]["template"]["spec"]["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["restartPolicy"] == "Never"
    assert {"volumes", "priorityClassName", "resourceClaims", "activeDeadlineSeconds"} & set(pod) == set()
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["securityContext"] == measuring["securityContext"]
        assert container["resources"]["limits"] == {"cpu": "50m", "memory": "64Mi"}
        assert container["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
        assert "envFrom" not in container


def test_each_image_is_pulled_once_by_a_container_that_does_nothing() -> None:
    cells = [render(load("kind", images={"pytorch": {"cpu": name}})) for name in ("x:1", "y:1", "x:1")]
    assert list_images(cells) == ["x:1", "y:1"]
    pod = make_pod(cells)
    assert [(item["image"], item["command"]) for item in pod["initContainers"]] == [
        ("x:1", ["true"]),
        ("y:1", ["true"]),
    ]
    assert [(item["image"], item["command"]) for item in pod["containers"]] == [("y:1", ["sleep", "660"])]


def test_a_job_ends_by_itself_when_its_runner_is_gone() -> None:
    job = make_prepull_job([render(load("kind"), owner=OWNER)], "prepull-1", 600)
    assert (job["spec"]["activeDeadlineSeconds"], job["spec"]["ttlSecondsAfterFinished"]) == (660, 60)
    assert job["metadata"]["ownerReferences"][0]["uid"] == OWNER.uid
    assert "ownerReferences" not in make_prepull_job([render(load("kind"))], "prepull-1", 600)["metadata"]


def test_a_pod_is_no_cell_to_those_who_select_cells() -> None:
    job = make_prepull_job([render(make_full_profile(), queue="team-a")], "prepull-1", 600)
    labels = job["metadata"]["labels"]
    assert job["spec"]["template"]["metadata"]["labels"] == labels
    assert labels == {
        "app.kubernetes.io/name": "benchmatrix",
        "app.kubernetes.io/component": "prepull",
        "app.kubernetes.io/managed-by": "benchmatrix",
        "benchmatrix/run-id": RUN_ID,
        "benchmatrix/pool": "cpu",
        "team": "a",
    }
    terms = [term.partition("=") for term in select_prepull(RUN_ID).split(",")]
    assert all(labels[key] == value for key, _, value in terms)
    assert "suspend" not in job["spec"]


def test_no_autoscaler_makes_a_node_for_it() -> None:
    annotations = make_prepull_job([render(load("gke"))], "prepull-1", 600)["spec"]["template"]["metadata"][
        "annotations"
    ]
    assert annotations["cluster-autoscaler.kubernetes.io/pod-scale-up-delay"] == "660s"


def test_it_keeps_off_cells_where_cells_keep_off_each_other() -> None:
    def list_components(*, is_alone: bool) -> list[str]:
        profile = load("kind")
        pool = profile.pools["cpu"].model_copy(update={"is_alone_on_node": is_alone})
        pod = make_pod([render(profile.model_copy(update={"pools": {"cpu": pool}}))])
        terms = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        return [term["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] for term in terms]

    assert list_components(is_alone=True) == ["prepull", "cell"]
    assert list_components(is_alone=False) == ["prepull"]


def test_the_image_of_the_tests_is_that_of_every_framework() -> None:
    assert list_images([render(load("gke"), make_cell(device="gpu"))]) == [IMAGE]
