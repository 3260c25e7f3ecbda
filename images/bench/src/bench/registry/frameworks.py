"""The frameworks that a cell can name: one entry each, with all that is not code of `bench.frameworks`."""

from dataclasses import dataclass
from typing import Literal

# For pydantic and mypy, which read no dict: a test holds `Framework` to the keys of FRAMEWORKS.
Framework = Literal["pytorch", "tensorflow", "jax"]
Device = Literal["cpu", "gpu"]
Mode = Literal["eager", "graph", "unfused", "fused-norm", "compiled"]
Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "int8-weights"]
EIGHT_BITS: tuple[Precision, ...] = ("fp8", "int8-weights")
ELEMENT_BYTES: dict[Precision, int] = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, **dict.fromkeys(EIGHT_BITS, 2)}
"""In eight bits those of what is no weight of a linear layer."""
ModelDialect = Literal["torch", "keras"]


@dataclass(frozen=True, kw_only=True)
class FrameworkSpec:
    """One framework; CONTRIBUTING.md, "Add a framework", lists what else it needs."""

    label: str
    """Its name for people."""
    package: str
    """The Python package whose version is the framework's."""
    dialect: ModelDialect
    """The definitions of `bench.models` that it runs."""
    modes: tuple[Mode, ...]
    """The first is taken where a matrix names none."""
    devices: tuple[Device, ...]
    reference: Framework | None
    """The framework that its times are divided by in comparisons; None: it is the reference of others."""
    module: str | None = None
    """Of a plugin: its code, with `load` and, for real data, `open_pipeline`. None: `bench.frameworks.NAME` and
    `bench.data.NAME`."""


# `graph` is tf.function without XLA, which the others have no counterpart of; `unfused` and `fused-norm` are `graph`
# with one switch turned each, to see what that switch is worth. Op by op, JAX runs every operation through its
# compiler, which nobody does in practice.
FRAMEWORKS: dict[Framework, FrameworkSpec] = {
    "pytorch": FrameworkSpec(
        label="PyTorch",
        package="torch",
        dialect="torch",
        modes=("eager", "compiled"),
        devices=("cpu", "gpu"),
        reference=None,
    ),
    "tensorflow": FrameworkSpec(
        label="TensorFlow",
        package="tensorflow",
        dialect="keras",
        modes=("eager", "graph", "unfused", "fused-norm", "compiled"),
        devices=("cpu", "gpu"),
        reference="pytorch",
    ),
    "jax": FrameworkSpec(
        label="JAX", package="jax", dialect="keras", modes=("compiled",), devices=("cpu", "gpu"), reference="pytorch"
    ),
}
