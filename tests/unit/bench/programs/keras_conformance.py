"""What TensorFlow and JAX have to do with Keras. The models are the real ones with fewer channels and blocks."""

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from workload_state import find_networks, find_optimizers, read_losses

# A user's configuration, which asks for other types: imported before Keras.
keras_home = tempfile.TemporaryDirectory()
os.environ["KERAS_HOME"] = keras_home.name
(Path(keras_home.name) / "keras.json").write_text(
    '{"backend": "torch", "floatx": "float16", "image_data_format": "channels_first"}'
)

import numpy as np  # noqa: E402
from conformance import Examiner, count_changes, infer, name_dtype, read_weights  # noqa: E402
from mirror_layers import skip_drawing  # noqa: E402

from factories import make_cell  # noqa: E402
from tiny_data import write_cifar10  # noqa: E402

CASES = [("conv6", "fp32"), ("conv6", "bf16"), ("conv6", "fp16"), ("text-classifier", "fp32")]
HALVES = (1e-3, 2e-2)


def make_examiner(
    framework: str,
    modes: tuple[str, ...],
    build_workload: Callable[..., Any],
    exchange: Callable[[Any], Callable[..., Any]],
) -> Examiner:
    """Return the examiner of a framework. `exchange(pool)`: the pool's `exchange` as one traced function of arrays."""
    from bench.models import keras as definitions
    from bench.tasks.keras import ImagePool, set_precision

    models: Any = definitions
    models.CONV6_STAGES = ((4, 2), (8, 2))
    models.GENERATOR_BLOCKS = 1
    models.GAN_WIDTH = 8
    models.TEXT_ENCODER = replace(models.TEXT_ENCODER, num_layers=1)
    models.RESNET18_BLOCKS = tuple(((w, 3, s), (w, 3, 1)) for w, s in ((8, 1), (8, 1), (16, 2), (16, 1)))

    def build(cell: Any) -> Any:
        set_precision(cell)
        return build_workload(cell)

    def open_pool() -> Callable[[Any], Any]:
        show = exchange(ImagePool(1, seed=1))
        return lambda numbers: show(np.repeat(numbers, 3).reshape(3, 1, 1, 3))[:, 0, 0, 0]

    # What the other modes of TensorFlow change has nothing to do with the precision.
    halves = tuple(mode for mode in modes if mode in ("graph", "compiled"))
    inferring = [*CASES, ("resnet18-cifar", "fp32"), ("matmul", "fp32"), ("matmul", "bf16")]
    return Examiner(
        framework=framework,
        modes=modes,
        build_workload=build,
        draw_weights=draw_weights,
        skip_drawing=lambda: skip_drawing(models.keras.initializers),
        open_pool=open_pool,
        training={case: modes if case[1] == "fp32" else halves for case in CASES},
        inference={case: modes if case[1] == "fp32" else halves for case in inferring},
        loss_tolerances={"fp32": (1e-4, 2e-2), "bf16": HALVES, "fp16": HALVES},
        half_tolerance=2e-3,
        half_steps=1,
        output_tolerances={"fp32": (1e-4, 1e-5)},
    )


def draw_weights(workload: Any) -> None:
    """Set every trainable weight to numbers that NumPy draws, the same ones in every framework."""
    rng = np.random.default_rng(3)
    for _, network in sorted(find_networks(workload).items()):
        for variable in network.trainable_variables:
            variable.assign(0.1 * rng.standard_normal(variable.shape, dtype=np.float32))


def read_loss_scale(workload: Any) -> float:
    return float(np.array(find_optimizers(workload)[0].dynamic_scale))


def check_an_overflow_halves_the_loss_scale_and_skips_the_update(examiner: Examiner) -> None:
    for mode in examiner.modes:
        workload = examiner.build(mode=mode, precision="fp16")
        assert read_loss_scale(workload) == 2.0**16
        bias = find_networks(workload)["model"].trainable_variables[-1]
        healthy = np.array(bias)
        # Four convolutions and three dense layers, each with kernel and bias.
        for value, num_changed in ((np.full_like(healthy, np.inf), 0), (healthy, 14)):
            find_networks(workload)["model"].trainable_variables[-1].assign(value)
            before = read_weights(workload)
            workload.run_step()
            assert count_changes(before, read_weights(workload)) == num_changed, mode
            assert read_loss_scale(workload) == 2.0**15


def check_real_data_come_batch_by_batch_in_the_precision_of_the_weights(examiner: Examiner) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data_dir = str(write_cifar10(Path(folder)))
        workload = examiner.build(phase="infer", precision="bf16", input_size=32, data_dir=data_dir)
        # The test set's images stand in order; an image's label is its number.
        for labels in ([0, 1, 2, 3], [4, 5, 6, 7]):
            infer(workload)
            assert np.asarray(workload.inputs[1]).tolist() == labels
        assert name_dtype(workload.inputs[0]) == "bfloat16"


def check_maps_of_three_and_nine_are_averaged_to_seven(_: Examiner) -> None:
    """Row i of 7 is the mean of rows from i n / 7, rounded down, to (i + 1) n / 7, rounded up, as in PyTorch."""
    from bench.models.keras import average_to

    for starts, ends in (
        ((0, 0, 0, 1, 1, 2, 2), (1, 1, 2, 2, 3, 3, 3)),
        ((0, 1, 2, 3, 5, 6, 7), (2, 3, 4, 6, 7, 8, 9)),
    ):
        images = np.random.default_rng(1).standard_normal((2, ends[-1], ends[-1], 3), dtype=np.float32)
        parts = [slice(*ends) for ends in zip(starts, ends, strict=True)]
        rows = [np.stack([images[:, rows, columns].mean((1, 2)) for columns in parts], 1) for rows in parts]
        np.testing.assert_allclose(average_to(images, 7), np.stack(rows, 1), rtol=1e-4, atol=1e-6)


def make_replicas(make_workload: Callable[[Any, int], Any], **fields: Any) -> list[Any]:
    """Return workloads of equal weights on one and on two devices, as `make_workload(cell, number)` makes them."""
    from bench.tasks.keras import set_precision

    cell = make_cell(**{"batch_size": 4, "input_size": 16, "num_classes": 10} | fields)
    set_precision(cell)
    workloads = [make_workload(cell, number) for number in (1, 2)]
    for workload in workloads:
        draw_weights(workload)
    return workloads


def compare_replicas(one: Any, two: Any) -> None:
    """Train two workloads of equal weights for a step, which must lead to equal losses, weights and gradients.

    Adam's first moments are a tenth of the gradients; Adam's steps would hide a gradient that is a multiple too large.
    """
    for workload in (one, two):
        workload.run_step()
        workload.synchronize()
    losses, others = (read_losses(workload) for workload in (one, two))
    np.testing.assert_allclose(losses, others, rtol=1e-6)
    pairs = [*zip(read_weights(one), read_weights(two), strict=True)]
    pairs += zip(read_moments(one), read_moments(two), strict=True)
    for left, right in pairs:
        assert np.abs(left - right).max() < 1e-5 * max(np.abs(left).max(), 1e-12)


def read_moments(workload: Any) -> Iterator[Any]:
    """Yield the first moments of every optimiser, without their loss scaling."""
    for optimizer in find_optimizers(workload):
        for moment in getattr(optimizer, "inner_optimizer", optimizer)._momentums:
            yield np.array(moment)
