"""The cells on which all frameworks must compute the same: small enough for seconds on two cores."""

from dataclasses import dataclass

from bench.schema import Cell, Framework, Mode
from factories import make_cell

NUM_STEPS = 3
# Adam's epsilon here: Keras adds it before the bias correction, PyTorch after it, and only next to nothing is the same
# in both places.
EPSILON = 1e-16


@dataclass(frozen=True, kw_only=True)
class Case:
    """One model at the size at which it is compared.

    `flattened`: (channels, side) of the feature map that the first dense layer takes, None where there is none.
    """

    input_size: int
    batch_size: int = 4
    num_classes: int | None = 10
    flattened: tuple[int, int] | None = None
    precisions: tuple[str, ...] = ("float32", "float64")


CASES = {
    "conv6": Case(input_size=32, flattened=(256, 4)),
    # At 64 px the side of its feature map is 2, averaged to 7. In float64 its 134 million weights would cost too much.
    "vgg16": Case(input_size=64, batch_size=2, flattened=(512, 7), precisions=("float32",)),
    "resnet18": Case(input_size=40),
    "resnet18-cifar": Case(input_size=16),
    "cyclegan": Case(input_size=28, batch_size=2, num_classes=None),
    "text-classifier": Case(input_size=16, num_classes=2),
}

# Framework and mode in Keras to the models and precisions that run there. JAX knows float64 only behind a switch, and
# takes minutes to compile it.
KERAS_RUNS: dict[tuple[Framework, Mode], tuple[tuple[str, ...], tuple[str, ...]]] = {
    ("tensorflow", "graph"): (tuple(CASES), ("float32", "float64")),
    ("tensorflow", "eager"): (("conv6", "resnet18-cifar"), ("float64",)),
    ("jax", "compiled"): (tuple(CASES), ("float32",)),
}


def list_keras_runs(framework: Framework, mode: Mode) -> list[tuple[str, str]]:
    """Return the pairs of model and precision that run in one mode of a framework."""
    models, precisions = KERAS_RUNS[framework, mode]
    return [(model, one) for model in models for one in precisions if one in CASES[model].precisions]


def make_mirror_cell(model: str, framework: Framework, mode: Mode = "eager") -> Cell:
    """Return the training cell on which the definitions are compared."""
    case = CASES[model]
    return make_cell(
        model=model,
        framework=framework,
        mode=mode,
        batch_size=case.batch_size,
        input_size=case.input_size,
        num_classes=case.num_classes,
        seed=7,
    )
