"""Threads and environment: what is set before a framework is imported, and what is recorded of it."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench.probes.cpu import count_threads
from bench.schema import Framework

PROGRAMS = Path(__file__).parents[1] / "programs"
ROOT = Path(__file__).parents[4]
PYTHONPATH = os.pathsep.join(map(str, (ROOT / "images" / "bench" / "src", ROOT / "tests")))


@pytest.mark.parametrize(
    ("quota", "cores", "expected"),
    [(None, 8, 8), (2.9, 8, 2), (0.5, 8, 1), (16.0, 8, 8)],
)
def test_there_are_as_many_threads_as_whole_cores(
    monkeypatch: pytest.MonkeyPatch, quota: float | None, cores: int, expected: int
) -> None:
    monkeypatch.setattr("bench.probes.cpu.read_cpu_quota_cores", lambda: quota)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: range(cores))
    assert count_threads() == expected


@pytest.fixture(scope="module", params=["pytorch", "tensorflow"])
def pinned_answers(request: pytest.FixtureRequest, interpreters: dict[Framework, Path]) -> dict[str, Any]:
    """What a framework says of itself in a process that has one core and switches set by its user."""
    core = min(os.sched_getaffinity(0))
    program = [str(interpreters[request.param]), str(PROGRAMS / "check_environment.py"), request.param]
    variables = {**os.environ, "PYTHONPATH": PYTHONPATH, "OMP_NUM_THREADS": "64", "TF_ENABLE_ONEDNN_OPTS": "1"}
    process = subprocess.run(
        program,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    answers: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return answers | {"framework": request.param}


def test_a_process_on_one_core_uses_one_thread_in_every_library(pinned_answers: dict[str, Any]) -> None:
    environment = pinned_answers["environment"]
    assert (environment["num_visible_cores"], environment["num_threads"]) == (1, 1)
    if pinned_answers["framework"] == "tensorflow":
        assert pinned_answers["threads"] == "1 1"
        names = ("intra_op_threads", "inter_op_threads")
    else:
        for line in ("at::get_num_threads() : 1", "omp_get_max_threads() : 1", "mkl_get_max_threads() : 1"):
            assert line in pinned_answers["threads"]
        names = ("num_threads", "num_interop_threads")
    assert [environment["settings"][name] for name in names] == [1, 1]


def test_nothing_is_imported_before_the_threads_are_set_and_the_import_is_timed(pinned_answers: dict[str, Any]) -> None:
    assert pinned_answers["early"] == []


def test_the_environment_names_versions_and_the_users_switches(pinned_answers: dict[str, Any]) -> None:
    environment = pinned_answers["environment"]
    package = {"pytorch": "torch", "tensorflow": "tensorflow"}[pinned_answers["framework"]]
    assert {package, "numpy"} <= set(environment["versions"])
    assert environment["settings"]["TF_ENABLE_ONEDNN_OPTS"] == "1"
    assert (os.uname().release, os.uname().nodename) == (environment["kernel"], environment["hostname"])
    assert (environment["git_revision"], environment["gpus"]) == ("abc", [])
