"""What a program in the environment of TensorFlow or JAX says of that framework, asked once for all tests."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench.schema import Framework
from framework_programs import Answers, ask


@pytest.fixture(scope="session")
def answers(interpreters: dict[Framework, Path]) -> dict[str, Answers]:
    """What the programs of both frameworks print, run side by side and once for all test files."""
    frameworks: tuple[Framework, ...] = ("tensorflow", "jax")
    with ThreadPoolExecutor() as pool:
        futures = {name: pool.submit(ask, interpreters[name], f"check_{name}.py") for name in frameworks}
    return {name: future.result() for name, future in futures.items()}


@pytest.fixture(scope="session")
def tensorflow(answers: dict[str, Answers]) -> Answers:
    return answers["tensorflow"]


@pytest.fixture(scope="session")
def jax(answers: dict[str, Answers]) -> Answers:
    return answers["jax"]
