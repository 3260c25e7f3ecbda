"""Real cells from environment variables to their records: each framework in a process of its own."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from bench.schema import Framework
from bench_process import Ending, get_result, run_bench
from factories import make_cell

SHORT = {"num_warmup_steps": 2, "max_warmup_seconds": 2.0, "num_steps": 5, "min_seconds": 0.3}

CASES = {
    "pytorch train": make_cell(batch_size=2, input_size=16, **SHORT),
    "tensorflow infer": make_cell(
        framework="tensorflow", mode="graph", model="resnet18", phase="infer", batch_size=2, input_size=64, **SHORT
    ),
    "jax train": make_cell(framework="jax", mode="compiled", batch_size=2, input_size=16, **SHORT),
}


@pytest.fixture(scope="module", params=CASES)
def ok(
    request: pytest.FixtureRequest, interpreters: dict[Framework, Path], tmp_path_factory: pytest.TempPathFactory
) -> Ending:
    """How a cell ended."""
    cell, folder = CASES[request.param], tmp_path_factory.mktemp("ok")
    return run_bench(
        interpreters[cell.framework],
        cell,
        folder,
        OMP_NUM_THREADS="64",
        TF_ENABLE_ONEDNN_OPTS="1",
        JAX_DISABLE_MOST_OPTIMIZATIONS="1",  # JAX compiles for longer than it computes here
    )


def test_a_real_cell_ends_with_one_complete_record_of_as_long_as_it_asks_for(ok: Ending) -> None:
    result = get_result(ok)
    assert (ok.exit_code, result.status, result.written_by, result.error) == (0, "ok", "bench", None)
    assert (result.run_id, result.repeat, result.attempt) == ("test-1", 2, "a1")
    assert sum(path.is_file() for path in ok.store.rglob("*")) == 1
    assert result.samples is not None
    assert result.phases.steady_seconds is not None
    assert len(result.samples.step_seconds) >= 5
    assert result.phases.steady_seconds >= 0.3
    assert len(result.samples.warmup_step_seconds) >= 2
    assert result.samples.device_step_seconds is None


THREADS = {"pytorch": ("num_threads", "num_interop_threads"), "tensorflow": ("intra_op_threads", "inter_op_threads")}


def test_a_process_on_one_core_uses_one_thread_and_its_environment_is_named(ok: Ending) -> None:
    result = get_result(ok)
    environment = result.environment
    assert environment is not None
    assert (environment.num_visible_cores, environment.num_threads) == (1, 1)
    assert {environment.settings[name] for name in THREADS.get(result.cell.framework, ())} <= {1}
    package = {"pytorch": "torch"}.get(result.cell.framework, result.cell.framework)
    assert {package, "numpy"} <= set(environment.versions)
    assert environment.settings["TF_ENABLE_ONEDNN_OPTS"] == "1"
    assert (os.uname().release, os.uname().nodename) == (environment.kernel, environment.hostname)


def test_the_times_fit_into_what_an_outside_stopwatch_shows(ok: Ending) -> None:
    result = get_result(ok)
    phases = result.phases.model_dump(exclude_none=True)  # a CPU is not spun up
    assert sum(phases.values()) <= (result.finished_at - result.started_at).total_seconds() <= ok.wall_seconds
    assert ok.started_at <= result.started_at
    assert result.finished_at <= ok.started_at + timedelta(seconds=ok.wall_seconds)
    assert phases["import_seconds"] > 0.05  # nothing of the framework was imported before the clock was read


def test_a_real_cell_says_who_used_the_cpus_and_the_memory_and_how_near_the_peak_it_came(ok: Ending) -> None:
    result = get_result(ok)
    assert result.cpu_use is not None
    assert result.roofline is not None
    assert result.validity is not None
    assert result.memory is not None
    assert result.environment is not None
    assert result.host_peak is not None
    assert result.calibration is not None
    assert (result.gpu_use, result.probe_failures, result.environment.gpu) == ((), (), None)
    assert 0.0 < result.cpu_use.own_cores <= 1.1  # it had one core
    assert result.cpu_use.num_affinity_cores == 1
    assert (result.phases.steady_seconds or 0.0) <= result.cpu_use.window_seconds
    assert 100e6 < (result.memory.peak_rss_bytes or 0) < 4e9
    assert (result.memory.peak_memory_allocated_bytes, result.memory.peak_memory_reserved_bytes) == (None, None)
    assert result.calibration.num_threads == result.host_peak.num_threads == 1
    assert result.roofline.peak_flops_per_second == result.host_peak.flops_per_second
    # What no processor does: 64 float32 operations a cycle (two AVX-512 FMA units) on its core at 6 GHz, each counting
    # for 2.25 (what Winograd's convolution saves).
    assert 0.0 < result.roofline.achieved_flops_per_second < 64 * 6e9 * 2.25
    # 0.3 s asked for: so short that a verdict other than valid is certain, and "too-short" is among the reasons.
    if (result.phases.steady_seconds or 0.0) < 0.5:
        assert "too-short" in [reason.verdict for reason in result.validity.reasons]
