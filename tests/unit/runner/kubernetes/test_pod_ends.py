"""Why pods ended that did not end by themselves, as kubelets, runtimes and controllers say it."""

from dataclasses import replace
from typing import Any

import pytest

from bench.exit_codes import EXIT_NODE_FAULT, EXIT_PREEMPTED
from cluster_objects import load_job, load_object, load_pod
from runner.kubernetes.object_status import PodStatus, read_pod_status
from runner.kubernetes.pod_ends import (
    explain_interruption,
    explain_node_fault,
    explain_own_limit,
    was_ended_by_interruption,
    was_ended_by_node_fault,
)

# The kubelet's words: pkg/kubelet/eviction/helpers.go, active_deadline.go, nodeshutdown/nodeshutdown_manager.go.
OVER_TMP = 'Usage of EmptyDir volume "tmp" exceeds the limit "8Gi". '
OVER_POD = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "
OVER_LOG = 'Container bench exceeded its local ephemeral storage limit "1Gi". '
LOW_ON_MEMORY = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
PAST_DEADLINE = "Pod was active on the node longer than the specified deadline"
SHUT_DOWN = "Pod was terminated in response to imminent node shutdown."


def end(code: int | None = 137, reason: str = "", message: str = "", **more: Any) -> PodStatus:
    """Return a pod whose container ended with `code`, and that its kubelet gives a reason for."""
    fields: dict[str, Any] = {"exit_code": code, "pod_reason": reason, "pod_message": message, "end_message": ""}
    return replace(load_pod("user"), **(fields | {"end_reason": reason or "Error"} | more))


@pytest.mark.parametrize("message", [OVER_TMP, OVER_POD, OVER_LOG])
@pytest.mark.parametrize("code", [137, EXIT_PREEMPTED, 143])
def test_a_pod_over_its_own_storage_limit_ended_for_that_alone(message: str, code: int) -> None:
    pod = end(code, "Evicted", message)
    assert explain_own_limit(pod) == message.strip()
    assert (explain_interruption(pod), explain_node_fault(pod)) == ("", "")


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (end(137, "Evicted", LOW_ON_MEMORY), f"Evicted: {LOW_ON_MEMORY.strip(': ')}"),
        (end(137, "DeadlineExceeded", PAST_DEADLINE), f"DeadlineExceeded: {PAST_DEADLINE}"),
        (end(EXIT_PREEMPTED, "Terminated", SHUT_DOWN), f"Terminated: {SHUT_DOWN}"),
        (end(137, "NodeLost", ""), "NodeLost"),
        (end(137, is_deleted=True), "the pod was deleted, and killed when its grace period was over"),
        (end(EXIT_PREEMPTED, is_deleted=True), "the pod was deleted"),
        (end(143), "SIGTERM, from whom is not known"),
        (replace(end(1), disruption="PreemptionByScheduler: made room"), "PreemptionByScheduler: made room"),
        (end(137), ""),
        (end(137, is_deleted=True, end_reason="OOMKilled"), ""),
        (end(1, is_deleted=True), ""),
        (end(0), ""),
    ],
)
def test_a_pod_that_was_taken_down_has_the_words_of_who_did_it(pod: PodStatus, words: str) -> None:
    assert explain_interruption(pod) == words


REFUSED: dict[str, Any] = {"has_run": False}


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (
            end(EXIT_NODE_FAULT, end_message="x\nerror: fault of this machine: GPU is lost"),
            "fault of this machine: GPU",
        ),
        (end(EXIT_NODE_FAULT), "the log of its container says nothing"),
        (load_pod("rejected"), "the kubelet refused the pod: OutOfcpu: Pod was rejected: Node didn't have enough"),
        (
            end(None, "UnexpectedAdmissionError", "Allocate failed", **REFUSED),
            "UnexpectedAdmissionError: Allocate failed",
        ),
        (end(None, "NodeAffinity", "Predicate NodeAffinity failed", **REFUSED), "NodeAffinity"),
        (end(None, "NodeShutdown", "Pod was rejected as the node is shutting down.", **REFUSED), "NodeShutdown"),
        (end(None, "Evicted", "The node had condition: [DiskPressure]. ", **REFUSED), "DiskPressure"),
        (
            end(128, end_reason="StartError", end_message="runc create failed: nvidia-container-cli: nvml error: x"),
            "StartError: runc create failed: nvidia-container-cli",
        ),
        (
            end(
                128,
                end_reason="StartError",
                end_message="failed to create containerd task: failed to create shim task: OCI runtime create failed: "
                "could not apply required modification to OCI specification: error modifying OCI spec: failed to "
                "inject CDI devices: unresolvable CDI devices management.nvidia.com/gpu=0: unknown",
            ),
            "unresolvable CDI devices management.nvidia.com/gpu=0",
        ),
    ],
)
def test_a_node_that_cannot_measure_is_at_fault_in_its_own_words(pod: PodStatus, words: str) -> None:
    assert words in explain_node_fault(pod)
    assert explain_interruption(pod) == ""


@pytest.mark.parametrize(
    "pod",
    [
        end(1),
        end(None, "DeadlineExceeded", PAST_DEADLINE, **REFUSED),
        end(None, "", "", **REFUSED),
        end(128, end_reason="StartError", end_message='exec: "python": executable file not found in $PATH'),
        replace(end(EXIT_NODE_FAULT), disruption="EvictionByEvictionAPI: drained"),
        load_pod("unschedulable"),
    ],
)
def test_what_a_cell_an_image_or_a_disruption_ended_is_no_fault_of_the_node(pod: PodStatus) -> None:
    assert explain_node_fault(pod) == ""


def test_a_job_failed_for_its_node_also_where_no_pod_is_left_to_say_so() -> None:
    message = f"Container bench for pod demo/x failed with exit code {EXIT_NODE_FAULT} matching FailJob rule at index 2"
    assert was_ended_by_node_fault(replace(load_job("oom"), message=message), None)
    assert not was_ended_by_node_fault(load_job("oom"), None)
    assert was_ended_by_node_fault(load_job("backoff"), load_pod("rejected"))
    assert not was_ended_by_node_fault(load_job("deadline"), load_pod("rejected"))


def test_a_job_that_failed_since_its_pod_was_deleted_is_not_the_cells_end() -> None:
    assert was_ended_by_interruption(load_job("oom"), end(137, is_deleted=True))
    assert not was_ended_by_interruption(load_job("oom"), end(137))
    assert not was_ended_by_interruption(load_job("deadline"), end(137, is_deleted=True))
    assert not was_ended_by_interruption(load_job("oom"), end(137, "DeadlineExceeded", PAST_DEADLINE))


def test_a_container_that_the_kubelet_did_not_find_has_no_exit_code_of_its_own() -> None:
    pod = load_object("pod-oom")
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    terminated |= {"reason": "ContainerStatusUnknown", "startedAt": None, "finishedAt": None}
    seen = read_pod_status(pod)
    assert (seen.exit_code, seen.has_run) == (None, False)


def test_a_pod_over_its_storage_limit_whose_container_was_not_found_is_no_fault_of_its_node() -> None:
    """As a kubelet of Kubernetes 1.36 left one: no start, no end, and `ContainerStatusUnknown`."""
    pod = load_object("pod-oom")
    pod["status"] |= {"reason": "Evicted", "message": OVER_TMP}
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    terminated |= {"reason": "ContainerStatusUnknown", "startedAt": None, "finishedAt": None}
    seen = read_pod_status(pod)
    assert explain_own_limit(seen) == OVER_TMP.strip()
    assert explain_node_fault(seen) == ""
    assert not was_ended_by_node_fault(load_job("oom"), seen)
