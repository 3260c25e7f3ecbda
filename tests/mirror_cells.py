"""The cells on which all frameworks must compute the same, from the registry: small enough for seconds on two cores."""

from bench.registry import MODELS, Framework, Mode
from bench.registry.models import MirrorPrecision
from bench.schema import Cell
from factories import make_cell

NUM_STEPS = 3
NUM_BLOCKS = 2
"""Of CycleGAN's generators instead of nine, which are alike: most of the time would go into compiling the others."""
# Adam's epsilon here: Keras adds it before the bias correction, PyTorch after it, and only next to nothing is the same
# in both places.
EPSILON = 1e-16
TRAINED = tuple(name for name, spec in MODELS.items() if "train" in spec.phases)
# Framework and mode in Keras to the precisions that run there: of each model the first that its case names. JAX knows
# float64 only behind a switch, and takes minutes to compile it.
KERAS_RUNS: dict[tuple[Framework, Mode], tuple[MirrorPrecision, ...]] = {
    ("tensorflow", "graph"): ("float64", "float32"),
    ("jax", "compiled"): ("float32",),
    ("tensorflow", "eager"): ("float64",),
}


def list_keras_runs(framework: Framework, mode: Mode) -> list[tuple[str, MirrorPrecision]]:
    cases = {name: MODELS[name].mirror for name in TRAINED}
    return [
        (name, next(precision for precision in KERAS_RUNS[framework, mode] if precision in case.precisions))
        for name, case in cases.items()
        if mode in case.modes
    ]


def make_mirror_cell(model: str, framework: Framework, mode: Mode = "eager") -> Cell:
    """Return the training cell on which the definitions are compared."""
    case = MODELS[model].mirror
    return make_cell(
        model=model,
        framework=framework,
        mode=mode,
        batch_size=case.batch_size,
        input_size=case.input_size,
        num_classes=case.num_classes,
        seed=7,
    )
