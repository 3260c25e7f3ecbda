"""What counts as a kernel or a copy in the traces of the frameworks' profilers."""

from pathlib import Path

import pytest

from bench.schema import Framework
from framework_programs import Answers, ask

XLA_FRAMEWORKS: tuple[Framework, ...] = ("tensorflow", "jax")
ORIGIN = 1_000_000.0  # nanoseconds
WRITTEN = [
    [0, "kernel", ORIGIN + 10_000, ORIGIN + 20_000],
    [0, "copy", ORIGIN + 40_000, ORIGIN + 42_000],
    [0, "kernel", ORIGIN + 15_000, ORIGIN + 30_000],
    [0, "copy", ORIGIN + 50_000, ORIGIN + 51_000],
    [1, "kernel", ORIGIN, ORIGIN + 5_000],
]


@pytest.fixture(scope="module", params=XLA_FRAMEWORKS)
def traces(request: pytest.FixtureRequest, interpreters: dict[Framework, Path]) -> Answers:
    return ask(interpreters[request.param], "check_profilers.py", request.param)


def test_kernels_and_copies_on_the_streams_of_gpus_count_and_nothing_else_of_a_trace(traces: Answers) -> None:
    assert traces["activities"] == WRITTEN


def test_a_cuda_graph_that_hides_its_kernels_is_refused(traces: Answers) -> None:
    assert traces["graph"] == "the profiler recorded a CUDA graph as a whole, not its kernels"


def test_a_real_trace_of_this_machine_can_be_read_and_has_no_gpu(traces: Answers) -> None:
    assert "/host:CPU" in traces["real_planes"]
    assert 0 < traces["real_seconds"] < 60
    assert traces["real_activities"] == 0


def test_torchs_kernels_and_copies_count_and_neither_launches_nor_annotations(
    interpreters: dict[Framework, Path],
) -> None:
    assert ask(interpreters["pytorch"], "check_profilers.py", "pytorch")["activities"] == [
        [1, "kernel", 10_000.0, 20_000.0],
        [1, "copy", 40_000.0, 42_000.0],
        [1, "copy", 50_000.0, 51_000.0],
    ]
