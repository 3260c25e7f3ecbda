"""Matrices as real pods under the restricted Pod Security level, with failures as they happen, up to their reports."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from real_cluster import RealCluster, is_running_for, read_exit_code

from bench.errors import EXIT_RESULT_IN_LOG
from bench.registry import FRAMEWORKS
from bench.store import parse_result_key, results_prefix

RUN_ID = "e2e-1"
S3_AWAY_SECONDS = 30.0
MATRIX = """
name: e2e
axes: {model: [conv6], phase: [train, infer]}
defaults:
  {framework: jax, device: cpu, batch_size: 8, num_warmup_steps: 2, num_steps: 10, min_seconds: 5,
   repeats: 2, timeout_seconds: 120}
include:
  # Three matrices of 2.3 GB each: more than the 3 GiB of a cell.
  - {model: matmul, phase: infer, batch_size: 1, input_size: 24000, num_classes: null, repeats: 1}
"""
ONE_CELL = """
name: one
axes: {model: [conv6], phase: [train]}
defaults:
  {framework: FRAMEWORK, device: cpu, batch_size: 8, num_warmup_steps: 2, num_steps: 10, min_seconds: 5,
   repeats: 1, timeout_seconds: 150}
"""


def disturb(real_cluster: RealCluster) -> dict[str, Any]:
    """Delete a pod in mid-measurement, then cut the store off while another measures; return the deleted pod."""
    deleted = real_cluster.wait_for_pod(lambda pod: is_running_for(pod, "-train-", 4.0))
    real_cluster.connection.request(
        "delete", f"/api/v1/namespaces/{real_cluster.namespace}/pods/{deleted['metadata']['name']}"
    )
    uid = deleted["metadata"]["uid"]  # Jobs run in any order: this one's next pod may be the last of all
    real_cluster.wait_for_pod(lambda pod: pod["metadata"]["uid"] != uid and is_running_for(pod, "conv6", 3.0))
    real_cluster.s3.stop()
    time.sleep(S3_AWAY_SECONDS)
    real_cluster.s3.start()
    return deleted


def test_every_planned_repeat_has_its_terminal_record_whatever_happens(
    real_cluster: RealCluster, provide_image: Callable[[str], str]
) -> None:
    real_cluster.set_up({"jax": provide_image("jax:cpu")})
    process = real_cluster.start_run(MATRIX, RUN_ID)

    deleted = disturb(real_cluster)
    output, _ = process.communicate()
    print(output)

    keys = list(real_cluster.store.list_keys(results_prefix(RUN_ID)))
    results = real_cluster.read_results(RUN_ID)
    assert 5 == len({(key.cell_id, key.repeat) for key in map(parse_result_key, keys) if key})
    assert 5 == len(keys), keys
    assert Counter({"ok": 4, "oom": 1}) == Counter(result.status for result in results), output
    (lost,) = [result for result in results if result.status == "oom"]
    assert "matmul" == lost.cell.model
    interrupted = list(real_cluster.store.list_keys(f"runs/{RUN_ID}/interrupted"))
    assert [deleted["metadata"]["uid"]] == [
        key.rpartition("/")[2].partition("-")[2].removesuffix(".json") for key in interrupted
    ]
    assert 1 == process.returncode  # one repeat did not end well
    report = real_cluster.folder / "reports" / RUN_ID / "report.html"
    assert "4 of 5 repeats ok" in report.read_text()
    for pod in real_cluster.list_pods():
        assert pod["status"]["qosClass"] == "Guaranteed"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_image_of_each_framework_measures_as_a_pod(
    real_cluster: RealCluster, provide_image: Callable[[str], str], framework: str
) -> None:
    image = provide_image(f"{framework}:cpu")
    real_cluster.set_up({framework: image})

    output, _ = real_cluster.start_run(ONE_CELL.replace("FRAMEWORK", framework), "one").communicate()

    print(output)
    (result,) = real_cluster.read_results("one")
    assert ("ok", framework) == (result.status, result.cell.framework), output
    assert result.environment is not None
    assert image == result.environment.image
    (pod,) = [pod for pod in real_cluster.list_pods() if pod["metadata"]["uid"] == result.attempt]
    assert pod["spec"]["nodeName"] == result.environment.hostname
    print(framework, result.phases)


def test_a_record_that_could_not_reach_the_store_is_taken_from_the_log(
    real_cluster: RealCluster, provide_image: Callable[[str], str]
) -> None:
    real_cluster.set_up({"jax": provide_image("jax:cpu")})
    long_cell = ONE_CELL.replace("FRAMEWORK", "jax").replace("min_seconds: 5", "min_seconds: 30")
    process = real_cluster.start_run(long_cell, "logged")

    # Long after the store was tried, which a busy machine does late, and long before the record is ready.
    real_cluster.wait_for_pod(lambda pod: is_running_for(pod, "-train-", 20.0))
    real_cluster.s3.stop()
    pod = real_cluster.wait_for_pod(lambda pod: read_exit_code(pod) is not None)
    real_cluster.s3.start()
    output, _ = process.communicate()

    print(output)
    assert EXIT_RESULT_IN_LOG == read_exit_code(pod)
    (result,) = real_cluster.read_results("logged")
    assert ("ok", "bench", pod["metadata"]["uid"]) == (result.status, result.written_by, result.attempt)
    assert result.samples is not None
    assert 10 <= len(result.samples.step_seconds)
    assert 0 == process.returncode
    assert "report: " in output
