"""Every framework carries cells out as its record says: checks of `programs`, in the environment of each."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from bench.schema import Framework
from bench.tasks.inputs import make_inputs
from factories import make_cell
from framework_programs import PROGRAMS, Answers, ask

MODULES: dict[Framework, tuple[str, ...]] = {
    "pytorch": ("check_pytorch", "conformance"),
    "tensorflow": ("check_tensorflow", "conformance", "keras_conformance"),
    "jax": ("check_jax", "conformance", "keras_conformance"),
}
CHECKS = [
    (framework, check)
    for framework, modules in MODULES.items()
    for module in modules
    for check in re.findall(r"^def (check_\w+)\(", (PROGRAMS / f"{module}.py").read_text(), re.M)
]


@pytest.fixture(scope="module")
def outcomes(interpreters: dict[Framework, Path]) -> dict[Framework, Answers]:
    """What failed of each framework's checks: they run side by side."""
    if not shutil.which("g++"):
        pytest.skip("torch.compile needs a C++ compiler on a CPU")
    with ThreadPoolExecutor() as pool:
        futures = {name: pool.submit(ask, interpreters[name], f"check_{name}.py") for name in MODULES}
    return {name: future.result() for name, future in futures.items()}


@pytest.mark.parametrize(("framework", "check"), CHECKS)
def test_a_framework_passes(outcomes: dict[Framework, Answers], framework: Framework, check: str) -> None:
    assert outcomes[framework][check] is None, outcomes[framework][check]


def test_a_batch_has_the_cells_shape_standard_normal_values_and_labels_of_every_class() -> None:
    images, labels = make_inputs(make_cell(batch_size=500, input_size=16, num_classes=5))
    assert (images.shape, images.dtype, labels.shape) == ((500, 3, 16, 16), np.dtype(np.float32), (500,))
    # 384,000 values: the mean's standard error is 0.0016.
    assert float(images.mean()) == pytest.approx(0.0, abs=0.01)
    assert float(images.std()) == pytest.approx(1.0, abs=0.01)
    assert set(labels.tolist()) == {0, 1, 2, 3, 4}


def test_another_seed_makes_other_data() -> None:
    batches = [make_inputs(make_cell(batch_size=2, seed=seed)) for seed in (1, 2)]
    assert not np.array_equal(batches[0][0], batches[1][0])
