"""Collect the answers that TensorFlow and JAX must both give about cells of small models.

The models are the real definitions with fewer channels and blocks. Weights are drawn by NumPy, the same ones in both.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.models import keras as definitions
from bench.schema import Cell
from bench.tasks.keras import ImagePool, make_translation_parts, set_precision
from factories import make_cell
from tiny_data import write_cifar10

NUM_STEPS = 3
SIZES: dict[str, dict[str, Any]] = {
    "conv6": {"batch_size": 4, "input_size": 16, "num_classes": 10},
    "text-classifier": {"batch_size": 2, "input_size": 8, "num_classes": 2},
    "cyclegan": {"batch_size": 1, "input_size": 24, "num_classes": None},
    "matmul": {"batch_size": 1, "input_size": 16, "num_classes": None},
}
TRAINING = (
    *(("conv6", precision) for precision in ("fp32", "bf16", "fp16")),
    ("text-classifier", "fp32"),
)
INFERENCE = (*TRAINING, ("matmul", "fp32"))


models: Any = definitions  # whose names of others are taken for its own


def shrink_models() -> None:
    """Give the models so few channels and blocks that compiling and running them takes seconds."""
    models.CONV6_STAGES = ((4, 2), (8, 2))
    models.GENERATOR_BLOCKS = 1
    models.GAN_WIDTH = 8
    models.TEXT_ENCODER = replace(models.TEXT_ENCODER, num_layers=1)


class Examiner:
    """Carries out cells with one framework on one CPU device."""

    def __init__(self, name: str, build_workload: Callable[[Cell], Any]) -> None:
        self.name = name
        self._build_workload = build_workload

    def build(self, model: str = "conv6", *, draw: bool = True, **overrides: Any) -> Any:
        """Return a small cell's workload, its weights drawn by NumPy."""
        cell = make_cell(model=model, framework=self.name, **{**SIZES[model], **overrides})
        set_precision(cell)
        workload = self._build_workload(cell)
        if draw:
            draw_weights(workload)
        return workload

    def check_training(self, mode: str) -> dict[str, Any]:
        """Train every model; say what became of losses and weights."""
        return {
            f"{model} {precision}": train(self.build(model, mode=mode, precision=precision))
            for model, precision in TRAINING
        }

    def check_inference(self, mode: str) -> dict[str, Any]:
        """Infer with every model; return the output and say whether any weight changed."""
        return {
            f"{model} {precision}": infer(self.build(model, mode=mode, precision=precision, phase="infer"))
            for model, precision in INFERENCE
        }

    def check_overflow(self, mode: str) -> dict[str, Any]:
        """Train in fp16 with a weight that makes gradients infinite, then with the weight as it was."""
        workload = self.build(mode=mode, precision="fp16")
        scales = [read_loss_scale(workload)]
        bias = workload.networks["model"].trainable_variables[-1]
        healthy = np.array(bias)
        bias.assign(np.full_like(healthy, np.inf))
        before = read_weights(workload)
        workload.run_step()
        num_changed = count_changes(before, read_weights(workload))
        scales.append(read_loss_scale(workload))
        workload.networks["model"].trainable_variables[-1].assign(healthy)
        before = read_weights(workload)
        workload.run_step()
        scales.append(read_loss_scale(workload))
        return {"scales": scales, "num_changed": [num_changed, count_changes(before, read_weights(workload))]}

    def check_real_data(self, mode: str) -> dict[str, Any]:
        """Infer in bf16 on CIFAR-10's files; return red of the first pixel of each image of two steps, and a type."""
        with tempfile.TemporaryDirectory() as folder:
            data_dir = str(write_cifar10(Path(folder)))
            workload = self.build(mode=mode, phase="infer", precision="bf16", input_size=32, data_dir=data_dir)
            steps = []
            for _ in range(2):
                workload.run_step()
                workload.synchronize()
                steps.append([int(label) for label in np.asarray(workload.inputs[1])])
            return {"labels": steps, "dtype": describe_dtype(workload.inputs[0])}

    def check_seeds(self) -> list[bool]:
        """Say whether weights of an equal and of another seed equal those of the first."""
        workloads = [self.build(draw=False, mode="compiled", seed=seed) for seed in (5, 5, 6)]
        kernels = [read_weights(workload)[0] for workload in workloads]
        return [np.array_equal(kernels[0], other) for other in kernels[1:]]


def draw_weights(workload: Any) -> None:
    """Set every trainable weight to numbers that NumPy draws."""
    rng = np.random.default_rng(3)
    for _, network in sorted(workload.networks.items()):
        for variable in network.trainable_variables:
            variable.assign(0.1 * rng.standard_normal(variable.shape, dtype=np.float32))


def read_weights(workload: Any) -> list[Any]:
    """Return every network's weights as NumPy arrays."""
    return [np.array(variable) for _, network in sorted(workload.networks.items()) for variable in network.variables]


def read_loss_scale(workload: Any) -> float:
    """Return the factor that the first optimiser multiplies the loss with."""
    return float(np.array(workload.optimizers[0].dynamic_scale))


def count_changes(before: list[Any], after: list[Any]) -> int:
    """Return how many arrays differ."""
    return sum(not np.array_equal(one, other) for one, other in zip(before, after, strict=True))


def train(workload: Any) -> dict[str, Any]:
    """Take NUM_STEPS steps and say what they did."""
    before = read_weights(workload)
    losses = []
    for _ in range(NUM_STEPS):
        workload.run_step()
        workload.synchronize()
        losses.append([float(loss) for loss in workload.losses])
    after = read_weights(workload)
    return {
        "losses": losses,
        "num_unchanged": len(after) - count_changes(before, after),
        "dtypes": sorted({str(weight.dtype) for weight in after}),
        "device": workload.device_kind(),
    }


def infer(workload: Any) -> dict[str, Any]:
    """Take two steps and return their output, its type, and what became of the weights."""
    before = read_weights(workload) if workload.networks.keys() != {"product"} else []
    for _ in range(2):
        workload.run_step()
    workload.synchronize()
    (output,) = workload._outputs
    after = read_weights(workload) if before else []
    return {
        "output": np.asarray(output).astype(np.float32).ravel()[:40].tolist(),
        "shape": list(output.shape),
        "dtypes": [describe_dtype(output), describe_dtype(workload.inputs[0])],
        "num_changed": count_changes(before, after),
        "losses": list(workload.losses),
        "device": workload.device_kind(),
    }


def describe_dtype(tensor: Any) -> str:
    """Return a tensor's type, `float32`."""
    return str(np.asarray(tensor).dtype)


def check_pool(trace: Callable[[ImagePool], Callable[[Any], Any]]) -> list[int]:
    """Feed 1,050 one-pixel images, each of its own number, in batches of three; return the numbers that came back.

    `trace` returns a pool's `exchange` as one traced function that takes and returns NumPy arrays.
    """
    exchange = trace(ImagePool(1, seed=1))
    numbers = np.arange(1, 1051, dtype=np.float32)
    returned = [exchange(np.repeat(batch, 3).reshape(3, 1, 1, 3)) for batch in numbers.reshape(-1, 3)]
    return [int(image[0, 0, 0]) for batch in returned for image in batch]


def check_translation_losses() -> dict[str, Any]:
    """Compute both losses of networks that multiply; return these, how often each was called, the fakes."""
    calls: list[str] = []

    def make_network(name: str, factor: float) -> Callable[..., Any]:
        def network(images: Any, *, training: bool) -> Any:
            assert training
            calls.append(name)
            return factor * images

        return network

    factors = {"generator_ab": 0.5, "generator_ba": 3.0, "discriminator_a": 1.0, "discriminator_b": 1.0}
    networks: Any = {name: make_network(name, factor) for name, factor in factors.items()}
    images = [value * np.ones((1, 2, 2, 3), np.float32) for value in (1.0, -1.0)]
    generators, discriminators = make_translation_parts(networks, image_size=2, seed=0)
    generator_loss, fakes = generators.compute_loss(*images)
    generator_calls = {name: calls.count(name) for name in factors}
    discriminator_loss, handed_on = discriminators.compute_loss(*images, *fakes)
    return {
        "losses": [float(generator_loss), float(discriminator_loss)],
        "calls": [generator_calls, {name: calls.count(name) for name in factors}],
        "fakes": [float(np.asarray(fake)[0, 0, 0, 0]) for fake in fakes],
        "num_handed_on": len(handed_on),
    }


def compare_replicas(one: Any, two: Any) -> dict[str, Any]:
    """Train two workloads of equal weights for a step; return losses and how far weights and moments are apart.

    Adam's first moments are a tenth of the gradients; Adam's steps would hide a gradient that is a multiple too large.
    """
    for workload in (one, two):
        workload.run_step()
        workload.synchronize()
    return {
        "losses": [[float(loss) for loss in workload.losses] for workload in (one, two)],
        "weights": max(measure_distances(read_weights(one), read_weights(two))),
        "moments": max(measure_distances(*(list(read_moments(workload)) for workload in (one, two)))),
    }


def measure_distances(ones: list[Any], others: list[Any]) -> Iterator[float]:
    """Yield, for each pair of arrays, their largest difference divided by the largest value."""
    for one, other in zip(ones, others, strict=True):
        yield float(np.abs(one - other).max() / max(np.abs(one).max(), 1e-12))


def read_moments(workload: Any) -> Iterator[Any]:
    """Yield the first moments of every optimiser, without their loss scaling."""
    for optimizer in workload.optimizers:
        for moment in getattr(optimizer, "inner_optimizer", optimizer)._momentums:
            yield np.array(moment)
