"""The cells on which all frameworks must compute the same: small enough for seconds on two cores."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from bench.models import sizes
from bench.registry import DECODERS, MODELS, Framework, Mode
from bench.schema import Cell
from factories import make_cell

MirrorPrecision = Literal["float32", "float64"]


@dataclass(frozen=True, kw_only=True)
class MirrorCase:
    """The small size at which the definitions of a model are compared: outputs, losses, gradients, Adam's updates.

    PyTorch's weights are copied to Keras. In float32 rounding decides single ReLUs, maxima and signs, and with them
    gradients: deep models without batch norm need wider tolerances there, and prove themselves in float64.
    """

    input_size: int
    num_classes: int | None = 10
    batch_size: int = 4
    in_jax: bool = True
    """Whether it is compared in JAX too, which takes seconds to compile each; at least one model with each kind of
    layer is. TensorFlow compares them all, and the definition is the same."""
    gradient_tolerance: float = 1e-4
    """In float32: the error of each gradient over its norm."""
    update_tolerances: tuple[float | None, float] = (0.05, 0.01)
    """In float32 and float64: the error of all updates after three steps over the way gone, where gradients agree, or
    None."""


CASES = {
    name: MirrorCase(input_size=spec.min_input_size, num_classes=spec.num_classes) for name, spec in MODELS.items()
} | {
    "conv6": MirrorCase(input_size=32),
    "vgg16": MirrorCase(input_size=64, batch_size=2, in_jax=False),
    "resnet18": MirrorCase(input_size=40, in_jax=False),
    "resnet18-cifar": MirrorCase(input_size=16),
    "resnet50": MirrorCase(input_size=40, in_jax=False),
    "vit-b-16": MirrorCase(input_size=32, batch_size=2),
    "cyclegan": MirrorCase(
        input_size=28, num_classes=None, batch_size=2, gradient_tolerance=0.05, update_tolerances=(None, 0.15)
    ),
    "matmul": MirrorCase(input_size=50, num_classes=None),
    "text-classifier": MirrorCase(input_size=16, num_classes=2),
    **dict.fromkeys(DECODERS, MirrorCase(input_size=16, num_classes=None)),
}

NUM_STEPS = 3
NUM_LAYERS, VGG16_SIDE = 2, 3
SMALLER: dict[str, Any] = {
    "GENERATOR_BLOCKS": 1,
    "GAN_WIDTH": 32,  # at which each kernel has the 1,000 weights that tell a distribution
    "VIT_ENCODER": replace(sizes.VIT_ENCODER, num_layers=NUM_LAYERS),
    "TEXT_ENCODER": replace(sizes.TEXT_ENCODER, num_layers=NUM_LAYERS),
    "RESNET18_BLOCKS": [*sizes.RESNET18_BLOCKS[:2], *sizes.RESNET18_BLOCKS[2::2]],
    "RESNET50_BLOCKS": [sizes.RESNET50_BLOCKS[number] for number in (0, 1, 3, 7, 13)],
    "DENSE_SIDE": VGG16_SIDE,  # 7: three quarters of all weights
}
"""What both dialects have in place of what `bench.models.sizes` says: more layers and blocks that are alike would
only take longer to compile."""
# Adam's epsilon here: Keras adds it before the bias correction, PyTorch after it, and only next to nothing is the same
# in both places.
EPSILON = 1e-16
TRAINED = tuple(name for name, spec in MODELS.items() if "train" in spec.phases)
# Framework and mode in Keras to the precision there. JAX knows float64 only behind a switch, and takes minutes to
# compile it.
KERAS_RUNS: dict[tuple[Framework, Mode], MirrorPrecision] = {
    ("tensorflow", "graph"): "float64",
    ("jax", "compiled"): "float32",
}


def list_keras_runs(framework: Framework, mode: Mode) -> Iterator[tuple[str, MirrorPrecision]]:
    for name in TRAINED:
        if framework != "jax" or CASES[name].in_jax:
            yield name, KERAS_RUNS[framework, mode]


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
