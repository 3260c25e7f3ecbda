"""The cells on which both frameworks must compute the same: small enough for seconds on two cores."""

from bench.schema import Cell, Framework
from factories import make_cell

NUM_STEPS = 3
PRECISIONS = ("float32", "float64")
# In float64 both frameworks' Adam gets this epsilon: Keras adds it before the bias correction, PyTorch after it, and
# only next to nothing is the same in both places.
EPSILON = 1e-20
# Model to (input size, feature map that the first dense layer flattens).
CASES = {"conv6": (32, (256, 4)), "resnet18": (64, None)}


def make_mirror_cell(model: str, framework: Framework, mode: str = "eager") -> Cell:
    """Return the training cell of four samples on which the two definitions are compared."""
    return make_cell(
        model=model, framework=framework, mode=mode, batch_size=4, input_size=CASES[model][0], num_classes=10, seed=7
    )
