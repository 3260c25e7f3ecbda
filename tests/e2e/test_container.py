"""The images as containers: what they read of their cgroup, as which user they run, and their errors."""

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.errors import EXIT_OK, EXIT_TRY_AGAIN, EXIT_USER_ERROR
from bench.schema import Cell, Result
from bench.worker.request import Order
from factories import make_cell

CELL = make_cell(framework="jax", mode="compiled", batch_size=4, num_warmup_steps=2, num_steps=5, min_seconds=0.5)
TIMEOUT = {"BENCH_TIMEOUT_SECONDS": "900"}
# As an emptyDir, which libraries can be loaded from; Docker's own tmpfs is `noexec`.
TMP = "/tmp:exec"
RESTRICTED = ("--read-only", "--tmpfs", TMP, "--cap-drop", "ALL", "--security-opt", "no-new-privileges")


@pytest.fixture(scope="module")
def image(build_image: Callable[[str], str]) -> str:
    return build_image("jax:cpu")


def run_container(
    docker: str,
    image: str,
    folder: Path,
    *options: str,
    variables: Mapping[str, str] | None = None,
    cell: Cell = CELL,
    repeat: int = 1,
) -> "subprocess.CompletedProcess[str]":
    """Run the image as a restricted pod would, with a store on a mounted folder."""
    folder.chmod(0o777)  # the container's user is nobody here
    order = Order(cell=cell, run_id="r", repeat=repeat, attempt="a", store_url="file:///store")
    words = [docker, "run", "--rm", *RESTRICTED, "--volume", f"{folder}:/store", *options]
    for name, value in {**order.to_variables(), **(variables or {})}.items():
        words += ["--env", f"{name}={value}"]
    return subprocess.run([*words, image], capture_output=True, text=True, check=False)


def read_result(folder: Path, repeat: int = 1) -> Result:
    (path,) = folder.glob(f"runs/r/results/*/{repeat}-*.json")
    return Result.model_validate_json(path.read_bytes())


@pytest.mark.parametrize(("cpus", "num_threads"), [("0.5", 1), ("1", 1), ("2", 2)])
def test_threads_follow_the_quota_of_the_cgroup(
    docker: str, image: str, tmp_path: Path, cpus: str, num_threads: int
) -> None:
    done = run_container(docker, image, tmp_path, "--cpus", cpus, "--memory", "3g", "--network", "none")

    assert EXIT_OK == done.returncode, done.stderr
    result = read_result(tmp_path)
    assert result.environment is not None
    assert result.cpu_use is not None
    assert (num_threads, float(cpus)) == (result.environment.num_threads, result.environment.cpu_quota_cores)
    assert 3 * 1024**3 == result.environment.memory_limit_bytes
    assert result.cpu_use.own_cores <= float(cpus) * 1.1
    # A thread that wants a whole core and has half of one is stopped in most periods, unless others leave it less.
    if cpus == "0.5" and result.cpu_use.own_cores > 0.4:
        assert (result.cpu_use.num_throttled_periods or 0) > 0
        assert result.validity is not None
        assert "throttled" in [reason.verdict for reason in result.validity.reasons]


def test_a_memory_limit_that_no_framework_fits_into_is_said_before_anything_is_measured(
    docker: str, image: str, tmp_path: Path
) -> None:
    done = run_container(docker, image, tmp_path, "--memory", "512m", "--network", "none")
    assert EXIT_USER_ERROR == done.returncode
    assert "memory: the container may take 512 MiB" in done.stderr
    assert not list(tmp_path.glob("runs/r/results/*/*.json"))


def test_a_store_that_is_away_is_worth_another_try_and_wrong_keys_are_not(
    docker: str, image: str, tmp_path: Path
) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    away = run_container(docker, image, tmp_path, "--network", "none", variables=keys | {"BENCH_STORE": "s3://b/p"})
    none = run_container(docker, image, tmp_path, "--network", "none", variables={"BENCH_STORE": "s3://b/p"})
    assert EXIT_TRY_AGAIN == away.returncode, away.stderr
    assert "waiting for the store: " in away.stderr
    assert EXIT_USER_ERROR == none.returncode, none.stderr
    assert "no AWS credentials found" in none.stderr


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "jax"])
def test_compiled_cells_run_on_a_read_only_root(
    docker: str, build_image: Callable[[str], str], tmp_path: Path, framework: str
) -> None:
    """TensorFlow and JAX compile without a compiler on PATH; PyTorch's is in its image and in its result."""
    cell = CELL.model_copy(update={"framework": framework})
    image = build_image(f"{framework}:cpu")
    done = run_container(docker, image, tmp_path, "--network", "none", variables=TIMEOUT, cell=cell)

    assert EXIT_OK == done.returncode, done.stderr
    environment = read_result(tmp_path).environment
    assert environment is not None
    assert (framework == "pytorch") == ("cxx_compiler" in environment.versions)
    assert not [name for name in environment.settings if "CACHE" in name]


@pytest.mark.parametrize(("framework", "kind"), [("pytorch", "*.so"), ("jax", "*-cache")])
def test_a_second_container_compiles_nothing_that_the_cache_holds(
    docker: str, build_image: Callable[[str], str], tmp_path: Path, framework: str, kind: str
) -> None:
    cell, image = CELL.model_copy(update={"framework": framework}), build_image(f"{framework}:cpu")
    cache, store = tmp_path / "cache", tmp_path / "store"
    for folder in (cache, store):
        folder.mkdir()
        folder.chmod(0o777)
    found: list[dict[str, int]] = []
    for repeat in (1, 2):
        options = ("--volume", f"{cache}:/cache", "--network", "none")
        variables = TIMEOUT | {"BENCH_COMPILE_CACHE": "/cache"}
        done = run_container(docker, image, store, *options, variables=variables, cell=cell, repeat=repeat)
        assert EXIT_OK == done.returncode, done.stderr
        found.append({str(path): path.stat().st_mtime_ns for path in cache.rglob(kind)})
        environment = read_result(store, repeat).environment
        assert environment is not None
        assert "/cache" == environment.settings["BENCH_COMPILE_CACHE"]

    assert found[0]
    assert found[0] == found[1]


def test_the_last_stage_holds_no_compiler_no_cache_and_no_root(docker: str, image: str) -> None:
    assert "65532\n" == ask(docker, image, "id -u")
    assert "" == ask(docker, image, "for name in gcc g++ cc c++ clang make ld; do command -v $name; done; true")
    assert "" == ask(docker, image, "find /root/.cache /tmp /var/cache/apt/archives -type f 2>/dev/null; true")
    config: dict[str, Any] = json.loads(
        subprocess.run([docker, "image", "inspect", image], check=True, capture_output=True, text=True).stdout
    )[0]["Config"]
    assert ["python", "-m", "bench"] == config["Entrypoint"]
    assert "65532:65532" == config["User"]
    assert config["Labels"]["org.opencontainers.image.title"] == "benchmatrix jax"
    assert not [entry for entry in config["Env"] if "KEY" in entry or "TOKEN" in entry]


def ask(docker: str, image: str, words: str) -> str:
    """Return what a shell in the image prints."""
    command = [docker, "run", "--rm", "--entrypoint", "sh", image, "-c", words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
