"""What the pre-puller makes of pods: why one gets no further, when the search is over, and what is said."""

from typing import Any

import pytest

from cluster_objects import load_pod
from runner.kubernetes.prepull import PrepulledPool, find_error


def make_pod(kind: str, **state: Any) -> dict[str, Any]:
    return {"status": {kind: [{"name": "image-0", "state": state}]}}


@pytest.mark.parametrize(
    ("pod", "error"),
    [
        ({}, ""),
        (make_pod("initContainerStatuses", waiting={"reason": "PodInitializing"}), ""),
        (make_pod("initContainerStatuses", waiting={"reason": "ErrImagePull", "message": "i/o timeout"}), ""),
        (make_pod("initContainerStatuses", terminated={"exitCode": 0, "reason": "Completed"}), ""),
        (
            make_pod("initContainerStatuses", waiting={"reason": "ImagePullBackOff", "message": "x:1: not found"}),
            "ImagePullBackOff: x:1: not found",
        ),
        (make_pod("containerStatuses", waiting={"reason": "InvalidImageName"}), "InvalidImageName"),
        (
            make_pod("initContainerStatuses", waiting={"reason": "CreateContainerConfigError", "message": "is root"}),
            "CreateContainerConfigError: is root",
        ),
        (
            make_pod("initContainerStatuses", terminated={"exitCode": 128, "reason": "StartError", "message": "true?"}),
            "StartError: true?",
        ),
    ],
)
def test_a_pod_that_gets_no_further_says_why(pod: dict[str, Any], error: str) -> None:
    assert find_error(pod) == error


def test_a_pool_is_done_when_no_pod_is_to_come_and_none_pulls() -> None:
    running, pulling = load_pod("running"), load_pod("image")
    assert pulling.phase == "Pending"
    pool = PrepulledPool(device="cpu", cells=[], pods=[running])
    assert not pool.is_done
    pool.is_complete = True
    assert pool.is_done
    pool.pods = [running, pulling]
    assert not pool.is_done
    pool.errors[pulling.uid] = "ErrImagePull: not found"
    assert pool.is_done
    assert pool.num_ready == 1


def test_what_is_said_names_the_nodes_and_the_reason() -> None:
    pool = PrepulledPool(device="gpu", cells=[], pods=[load_pod("running")])
    assert pool.describe(12.4) == "pre-pull, pool gpu: 1 of 1 nodes with room have the 0 images after 12 s"
    pool.pods.append(load_pod("image"))
    assert pool.describe(12.4).endswith(
        "1 of 2 nodes with room have the 0 images after 12 s; the others pull with their first cell"
    )
    pool.reason = "the Job x gets no pod"
    assert pool.describe(12.4).endswith("; the others pull with their first cell (the Job x gets no pod)")
