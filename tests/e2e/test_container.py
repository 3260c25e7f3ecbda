"""The images as containers: what they read of their cgroup, as which user they run, and their errors."""

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.exit_codes import EXIT_OK, EXIT_TRY_AGAIN, EXIT_USER_ERROR
from bench.order import Order
from bench.schema import Result
from factories import make_cell

CELL = make_cell(framework="jax", mode="compiled", batch_size=4, num_warmup_steps=2, num_steps=5, min_seconds=0.5)
RESTRICTED = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")


@pytest.fixture(scope="module")
def image(build_image: Callable[[str], str]) -> str:
    return build_image("jax:cpu")


def run_container(
    docker: str, image: str, folder: Path, *options: str, variables: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run the image as a restricted pod would, with a store on a mounted folder."""
    folder.chmod(0o777)  # the container's user is nobody here
    order = Order(cell=CELL, run_id="r", repeat=1, attempt="a", store_url="file:///store")
    words = [docker, "run", "--rm", *RESTRICTED, "--volume", f"{folder}:/store", *options]
    for name, value in {**order.to_variables(), **(variables or {})}.items():
        words += ["--env", f"{name}={value}"]
    return subprocess.run([*words, image], capture_output=True, text=True, check=False)


def read_result(folder: Path) -> Result:
    (path,) = folder.glob("runs/r/results/*/*.json")
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
    if cpus == "0.5":  # a thread that wants a whole core and has half of one is stopped in most periods
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


def test_the_last_stage_holds_no_compiler_no_cache_and_no_root(docker: str, image: str) -> None:
    def ask(words: str) -> str:
        command = [docker, "run", "--rm", "--entrypoint", "sh", image, "-c", words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert "65532\n" == ask("id -u")
    assert "" == ask("for name in gcc g++ cc c++ clang make ld; do command -v $name; done; true")
    assert "" == ask("find /root/.cache /tmp /var/cache/apt/archives -type f 2>/dev/null; true")
    config: dict[str, Any] = json.loads(
        subprocess.run([docker, "image", "inspect", image], check=True, capture_output=True, text=True).stdout
    )[0]["Config"]
    assert ["python", "-m", "bench"] == config["Entrypoint"]
    assert "65532:65532" == config["User"]
    assert config["Labels"]["org.opencontainers.image.title"] == "benchmatrix jax"
    assert not [entry for entry in config["Env"] if "KEY" in entry or "TOKEN" in entry]
