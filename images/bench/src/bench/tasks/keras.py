"""Tasks in Keras 3, for TensorFlow and JAX: networks, the parts of a training step in their order, and inference."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import keras
import numpy as np
from keras import ops

from bench.models import build_model
from bench.models.keras import widen
from bench.registry import EIGHT_BITS, MODELS
from bench.schema import Cell
from bench.tasks.cyclegan import POOL_SIZE, compute_discriminator_loss, compute_generator_loss
from bench.tasks.inputs import Arrays, find_position, make_inputs

Tensor = Any
Tensors = tuple[Tensor, ...]


@dataclass(kw_only=True)
class Part:
    """One loss, the networks that it trains, and what it hands to the next part."""

    networks: Sequence[keras.Model]
    """Those that this part trains. The loss may use others: they get no gradients in this part."""
    compute_loss: Callable[..., tuple[Tensor, Tensors]]
    """Returns the loss (float32 scalar) of the inputs and the previous part's tensors; and the next part's tensors.
    Traceable by tf.function and, in a keras.StatelessScope, by jax.jit."""
    state: tuple[keras.Variable, ...] = ()
    """What the loss keeps from step to step beside the weights of networks."""
    optimizer: Any = None

    @property
    def trainable(self) -> list[keras.Variable]:
        return [variable for network in self.networks for variable in network.trainable_variables]


@dataclass(frozen=True, kw_only=True)
class Task:
    """The networks of a cell and what is done with them."""

    networks: Mapping[str, Any]
    infer: Callable[..., Tensor]
    """Returns the output for a step's inputs."""
    parts: Sequence[Part] = ()
    """Run in this order in every training step, each with its own optimiser; empty where nothing is trained."""

    def list_variables(self) -> list[keras.Variable]:
        networks = [network for network in self.networks.values() if isinstance(network, keras.Layer)]
        owners = [*networks, *(part.optimizer for part in self.parts)]
        weights = [variable for owner in owners for variable in owner.variables]
        return weights + [variable for part in self.parts for variable in part.state]


HALVES = {"fp16": "float16"} | dict.fromkeys(("bf16", *EIGHT_BITS), "bfloat16")


def set_precision(cell: Cell) -> dict[str, str | int | bool]:
    """Set Keras's types and image layout for the cell, overriding ~/.keras/keras.json; return the settings.

    Half precision is a mixed policy for training (float32 variables, half-precision arithmetic) and half-precision
    variables for inference.
    """
    policy = HALVES.get(cell.precision, "float32")
    if cell.phase == "train" and policy != "float32":
        policy = f"mixed_{policy}"
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy(policy)
    keras.config.set_image_data_format("channels_last")
    adam = "Keras Adam with dynamic loss scale" if cell.precision == "fp16" else "Keras Adam"
    optimizer = adam if cell.phase == "train" else "none"
    return {"dtype_policy": policy, "memory_format": "channels last (NHWC)", "optimizer": optimizer}


def prepare_inputs(cell: Cell) -> Arrays:
    """Return the cell's synthetic batch as Keras takes it: images channels last.

    Integers stay int64: TensorFlow keeps int32 tensors of a GPU in the host's memory and would copy them in every step.
    (JAX makes them int32 itself.)
    """
    arrays = make_inputs(cell)
    return tuple(np.ascontiguousarray(array.transpose(0, 2, 3, 1) if array.ndim == 4 else array) for array in arrays)


def cast_input(tensor: Any) -> Any:
    if keras.backend.is_int_dtype(keras.backend.standardize_dtype(tensor.dtype)):
        return tensor
    return ops.cast(tensor, keras.config.dtype_policy().variable_dtype)


# Of torch.amp.GradScaler; Keras starts at 2^15 by itself. Both halve after an overflow, double after 2,000 good steps.
INITIAL_LOSS_SCALE = 2.0**16
LOSS_SCALE_GROWTH_STEPS = 2_000


def build_optimizer(cell: Cell, variables: Sequence[keras.Variable]) -> keras.optimizers.Optimizer:
    """Return Adam over `variables` with the model's rate and betas; in fp16 with dynamic loss scaling.

    Epsilon is 1e-8 as in PyTorch (Keras's own default is 1e-7), though Keras adds it before the bias correction and
    PyTorch after it: the updates differ where a gradient is below about 1e-6, the amount of work does not.
    """
    spec = MODELS[cell.model]
    beta_1, beta_2 = spec.betas
    optimizer = keras.optimizers.Adam(spec.learning_rate, beta_1=beta_1, beta_2=beta_2, epsilon=1e-8)
    if cell.precision == "fp16":
        optimizer = keras.optimizers.LossScaleOptimizer(
            optimizer, initial_scale=INITIAL_LOSS_SCALE, dynamic_growth_steps=LOSS_SCALE_GROWTH_STEPS
        )
    optimizer.build(list(variables))
    return optimizer


def compute_classification_loss(model: keras.Model, samples: Tensor, labels: Tensor) -> tuple[Tensor, Tensors]:
    """Return the cross entropy of the model's logits, averaged over the batch; integer labels (batch,)."""
    logits = widen(model(samples, training=True))
    return ops.mean(ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)), ()


class ImagePool:
    """The last fakes (Shrivastava et al., arXiv 1612.07828): filled first, then each new one is swapped half the time.

    Everything, the drawing of lots too, stays on the device and is kept in variables, so that a whole step can be
    traced. Of several replicas in TensorFlow each has its own pool (`on_read`), as each process has in PyTorch.
    """

    def __init__(self, image_size: int, *, seed: int) -> None:
        shape = (POOL_SIZE, image_size, image_size, 3)
        self.images = _make_variable(shape, keras.config.dtype_policy().variable_dtype)
        self.num_images = _make_variable((), "int")  # int64 in TensorFlow, which keeps int32 of a GPU on the host
        self._seeds = keras.random.SeedGenerator(seed)
        self.state = (self.images, self.num_images, self._seeds.state)

    def exchange(self, images: Tensor) -> Tensor:
        """Return a batch (batch, size, size, 3): each image itself, or one from the pool in its place.

        They have the type of the networks' weights. No gradient goes through it.
        """
        new_images = ops.cast(ops.stop_gradient(images), self.images.dtype)
        batch_size = new_images.shape[0]
        lots = keras.random.randint((batch_size,), 0, POOL_SIZE, dtype=self.num_images.dtype, seed=self._seeds)
        swaps = keras.random.uniform((batch_size,), dtype="float32", seed=self._seeds) < 0.5
        pool, num_images = self.images.value, self.num_images.value
        chosen = []
        for i in range(batch_size):
            is_full = num_images >= POOL_SIZE
            slot = ops.where(is_full, lots[i], num_images)
            old, new = ops.take(pool, slot, axis=0), new_images[i]
            is_swapped = ops.logical_and(is_full, swaps[i])
            enters = ops.logical_or(ops.logical_not(is_full), swaps[i])
            pool = ops.scatter_update(pool, ops.reshape(slot, (1, 1)), ops.where(enters, new, old)[None])
            num_images = ops.minimum(num_images + 1, POOL_SIZE)
            chosen.append(ops.where(is_swapped, old, new))
        self.images.assign(pool)
        self.num_images.assign(num_images)
        return ops.stack(chosen)


def _make_variable(shape: tuple[int, ...], dtype: str) -> keras.Variable:
    return keras.Variable(
        "zeros", shape, dtype, trainable=False, synchronization="on_read", aggregation="only_first_replica"
    )


def make_translation_parts(networks: Mapping[str, Any], *, image_size: int, seed: int) -> list[Part]:
    """Return the parts of a training step of CycleGAN. Inputs: images of domains a and b, in [-1, 1].

    Losses are computed in float32 at least, as PyTorch's autocast does.
    """
    names = ("generator_ab", "generator_ba", "discriminator_a", "discriminator_b")
    networks_in_order = [networks[name] for name in names]
    to_b, to_a, judge_a, judge_b = (partial(network, training=True) for network in networks_in_order)
    pools = [ImagePool(image_size, seed=pool_seed) for pool_seed in (seed, (seed + 1) % 2**32)]

    def train_generators(*images: Tensor) -> tuple[Tensor, Tensors]:
        generators, discriminators = (to_b, to_a), (judge_a, judge_b)
        loss, fakes = compute_generator_loss(
            generators, discriminators, images, l1=compute_l1_loss, gan=compute_gan_loss
        )
        return loss, tuple(map(ops.stop_gradient, fakes))

    def train_discriminators(*tensors: Tensor) -> tuple[Tensor, Tensors]:
        fakes = [pool.exchange(fake) for pool, fake in zip(pools, tensors[2:], strict=True)]
        return compute_discriminator_loss((judge_a, judge_b), tensors[:2], fakes, gan=compute_gan_loss), ()

    state = tuple(variable for pool in pools for variable in pool.state)
    return [
        Part(networks=networks_in_order[:2], compute_loss=train_generators),
        Part(networks=networks_in_order[2:], compute_loss=train_discriminators, state=state),
    ]


def compute_gan_loss(prediction: Tensor, *, is_real: bool) -> Tensor:
    """Return the least-squares GAN loss (Mao et al., arXiv 1611.04076): mean squared distance to 1 (real) or 0."""
    return ops.mean(ops.square(widen(prediction) - float(is_real)))


def compute_l1_loss(images: Tensor, target: Tensor) -> Tensor:
    return ops.mean(ops.abs(widen(images) - widen(target)))


def build_task(cell: Cell) -> Task:
    """Return the cell's task with freshly initialised networks and, for training, optimisers.

    They are created on Keras's current device, in the types that `set_precision` set.
    """
    model = build_model(cell, "keras")
    match MODELS[cell.model].task:
        case "image-classification" | "text-classification":
            networks = {"model": model}
            parts = [Part(networks=[model], compute_loss=partial(compute_classification_loss, model))]
        case "image-translation":
            networks = model
            parts = make_translation_parts(model, image_size=cell.input_size, seed=cell.seed)
        case "matrix-product":
            return Task(networks={"product": model}, infer=model)
        case "text-generation":
            return Task(networks={"model": model}, infer=partial(model, position=find_position(cell)))

    def infer(samples: Tensor, _: Tensor) -> Tensor:
        """Return the logits, or images of domain b for those of domain a."""
        return next(iter(networks.values()))(samples, training=False)

    if cell.phase == "infer":
        return Task(networks=networks, infer=infer)
    for part in parts:
        part.optimizer = build_optimizer(cell, part.trainable)
    return Task(networks=networks, infer=infer, parts=parts)
