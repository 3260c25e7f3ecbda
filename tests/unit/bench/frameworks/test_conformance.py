"""Every framework carries cells out as its record says: checks of `programs`, in the environment of each."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from bench.schema import Framework
from bench.tasks.cyclegan import compute_discriminator_loss, compute_generator_loss
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


def test_cyclegans_losses_are_those_of_its_authors() -> None:
    """By hand: a = 1, b = -1; generators multiply by 0.5 (a to b) and 3 (b to a), discriminators by 1.

    Fakes: of b 0.5, of a -3. Generators: least squares (0.5 - 1)^2 + (-3 - 1)^2 = 16.25, cycle |1.5 - 1| + |-1.5 + 1|
    = 1, identity |-0.5 + 1| + |3 - 1| = 2.5; together 16.25 + 10 x 1 + 10 x 0.5 x 2.5. Discriminators: of a
    (1 - 1)^2 + (-3)^2 = 9, of b (-1 - 1)^2 + 0.5^2 = 4.25; half of it.
    """

    def l1(images: float, target: float) -> float:
        return abs(images - target)

    def gan(prediction: float, *, is_real: bool) -> float:
        return (prediction - is_real) ** 2

    generators, discriminators = (lambda x: 0.5 * x, lambda x: 3.0 * x), (float, float)
    loss, fakes = compute_generator_loss(generators, discriminators, (1.0, -1.0), l1=l1, gan=gan)
    assert (loss, fakes) == (38.75, (-3.0, 0.5))
    assert compute_discriminator_loss(discriminators, (1.0, -1.0), fakes, gan=gan) == 6.625
