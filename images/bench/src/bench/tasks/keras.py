"""Tasks in Keras 3, for TensorFlow and JAX: networks, the parts of a training step in their order, and inference."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import keras
import numpy as np
from keras import ops

from bench.models import build_model
from bench.registry import MODELS
from bench.schema import Cell
from bench.tasks.inputs import Arrays, make_inputs

Tensor = Any
Tensors = tuple[Tensor, ...]


class Part(Protocol):
    """One loss, the networks that it trains, and what it hands to the next part."""

    @property
    def networks(self) -> tuple[keras.Model, ...]:
        """Those that this part trains. The loss may use others: they get no gradients in this part."""

    @property
    def state(self) -> tuple[keras.Variable, ...]:
        """What the loss keeps from step to step beside the weights of networks."""

    def compute_loss(self, *tensors: Tensor) -> tuple[Tensor, Tensors]:
        """Return the loss (float32 scalar) of the inputs and the previous part's tensors; and the next part's tensors.

        Traceable by tf.function and, in a keras.StatelessScope, by jax.jit.
        """


class Task(Protocol):
    """The networks of a cell and what is done with them."""

    @property
    def networks(self) -> Mapping[str, Any]:
        """The networks by their names."""

    parts: tuple[Part, ...]
    """Run in this order in every training step, each with its own optimiser; empty where nothing is trained."""

    def infer(self, *inputs: Tensor) -> Tensor:
        """Return the output for a step's inputs."""


def list_trainable(part: Part) -> list[keras.Variable]:
    return [variable for network in part.networks for variable in network.trainable_variables]


def list_variables(task: Task) -> list[keras.Variable]:
    """Return every variable that a step reads or changes, but the optimisers'."""
    networks = [network for network in task.networks.values() if isinstance(network, keras.Layer)]
    weights = [variable for network in networks for variable in network.variables]
    return weights + [variable for part in task.parts for variable in part.state]


HALVES = {"fp16": "float16", "bf16": "bfloat16"}


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
    return {"dtype_policy": policy, "memory_format": "channels last (NHWC)"}


def prepare_inputs(cell: Cell) -> Arrays:
    """Return the cell's synthetic batch as Keras takes it: images channels last.

    Integers stay int64: TensorFlow keeps int32 tensors of a GPU in the host's memory and would copy them in every step.
    (JAX makes them int32 itself.)
    """
    return tuple(np.ascontiguousarray(to_channels_last(array)) for array in make_inputs(cell))


def cast_input(tensor: Any) -> Any:
    if keras.backend.is_int_dtype(keras.backend.standardize_dtype(tensor.dtype)):
        return tensor
    return ops.cast(tensor, keras.config.dtype_policy().variable_dtype)


def widen(tensor: Any) -> Any:
    """Return a half-precision tensor in float32, others as they are: losses are summed up in float32, as PyTorch's."""
    return ops.cast(tensor, keras.backend.result_type(tensor.dtype, "float32"))


def to_channels_last(array: Any) -> Any:
    """Return images (batch, channels, height, width) as (batch, height, width, channels); other arrays as they are."""
    return array.transpose(0, 2, 3, 1) if array.ndim == 4 else array


# Of torch.amp.GradScaler; Keras starts at 2^15 by itself. Both halve after an overflow, double after 2,000 good steps.
INITIAL_LOSS_SCALE = 2.0**16
LOSS_SCALE_GROWTH_STEPS = 2_000


def name_optimizer(cell: Cell) -> str:
    """Return what updates the weights, for the record, as PyTorch's `default Adam`; `none` where nothing is trained."""
    if cell.phase != "train":
        return "none"
    return "Keras Adam with dynamic loss scale" if cell.precision == "fp16" else "Keras Adam"


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


class Classification:
    """Cross entropy of the model's logits, averaged over the batch. Inputs: samples and integer labels (batch,)."""

    def __init__(self, model: keras.Model) -> None:
        self.networks = {"model": model}
        self.parts: tuple[Part, ...] = (ClassificationPart(model),)

    def infer(self, samples: Tensor, labels: Tensor) -> Tensor:
        return self.networks["model"](samples, training=False)


class ClassificationPart:
    """The one part of a classifier's training step."""

    state: tuple[keras.Variable, ...] = ()

    def __init__(self, model: keras.Model) -> None:
        self.networks = (model,)

    def compute_loss(self, *tensors: Tensor) -> tuple[Tensor, Tensors]:
        samples, labels = tensors
        logits = widen(self.networks[0](samples, training=True))
        return ops.mean(ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)), ()


POOL_SIZE = 50


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


# CycleGAN's losses, weights and order as in the authors' code (github.com/junyanz/pytorch-CycleGAN-and-pix2pix, models/
# cycle_gan_model.py): first both generators, with the discriminators frozen, then both discriminators, on pooled
# images. Losses are computed in float32 at least, as PyTorch's autocast does.
CYCLE_WEIGHT = 10.0
IDENTITY_WEIGHT = 0.5  # times CYCLE_WEIGHT
DISCRIMINATOR_WEIGHT = 0.5  # halves the objective: discriminators learn at half the speed of the generators


class ImageTranslation:
    """A training step of CycleGAN; inference translates from a to b. Inputs: images of domains a and b, in [-1, 1]."""

    def __init__(self, networks: Mapping[str, keras.Model], *, image_size: int, seed: int) -> None:
        self.networks = dict(networks)
        self.parts: tuple[Part, ...] = (GeneratorPart(networks), DiscriminatorPart(networks, image_size, seed))

    def infer(self, images_a: Tensor, images_b: Tensor) -> Tensor:
        return self.networks["generator_ab"](images_a, training=False)


class GeneratorPart:
    """Trains both generators: least-squares GAN loss, cycle consistency and identity."""

    state: tuple[keras.Variable, ...] = ()

    def __init__(self, networks: Mapping[str, keras.Model]) -> None:
        self.networks = (networks["generator_ab"], networks["generator_ba"])
        self._discriminators = (networks["discriminator_a"], networks["discriminator_b"])

    def compute_loss(self, *tensors: Tensor) -> tuple[Tensor, Tensors]:
        images_a, images_b = tensors
        discriminator_a, discriminator_b = self._discriminators
        fake_b, fake_a = self._translate_ab(images_a), self._translate_ba(images_b)
        adversarial = compute_gan_loss(discriminator_b(fake_b, training=True), is_real=True)
        adversarial = adversarial + compute_gan_loss(discriminator_a(fake_a, training=True), is_real=True)
        cycle = compute_l1_loss(self._translate_ba(fake_b), images_a)
        cycle = cycle + compute_l1_loss(self._translate_ab(fake_a), images_b)
        identity = compute_l1_loss(self._translate_ab(images_b), images_b)
        identity = identity + compute_l1_loss(self._translate_ba(images_a), images_a)
        loss = adversarial + CYCLE_WEIGHT * (cycle + IDENTITY_WEIGHT * identity)
        return loss, (ops.stop_gradient(fake_a), ops.stop_gradient(fake_b))

    def _translate_ab(self, images: Tensor) -> Tensor:
        return self.networks[0](images, training=True)

    def _translate_ba(self, images: Tensor) -> Tensor:
        return self.networks[1](images, training=True)


class DiscriminatorPart:
    """Trains both discriminators on real images and on fakes from the pools."""

    def __init__(self, networks: Mapping[str, keras.Model], image_size: int, seed: int) -> None:
        self.networks = (networks["discriminator_a"], networks["discriminator_b"])
        self._pools = tuple(ImagePool(image_size, seed=pool_seed) for pool_seed in (seed, (seed + 1) % 2**32))
        self.state = tuple(variable for pool in self._pools for variable in pool.state)

    def compute_loss(self, *tensors: Tensor) -> tuple[Tensor, Tensors]:
        reals, fakes = tensors[:2], tensors[2:]
        loss = 0.0
        for discriminator, pool, real, fake in zip(self.networks, self._pools, reals, fakes, strict=True):
            loss = loss + compute_gan_loss(discriminator(real, training=True), is_real=True)
            loss = loss + compute_gan_loss(discriminator(pool.exchange(fake), training=True), is_real=False)
        return DISCRIMINATOR_WEIGHT * loss, ()


def compute_gan_loss(prediction: Tensor, *, is_real: bool) -> Tensor:
    """Return the least-squares GAN loss (Mao et al., arXiv 1611.04076): mean squared distance to 1 (real) or 0."""
    return ops.mean(ops.square(widen(prediction) - float(is_real)))


def compute_l1_loss(images: Tensor, target: Tensor) -> Tensor:
    return ops.mean(ops.abs(widen(images) - widen(target)))


class MatrixProduct:
    """The product of two stacks of square matrices; nothing is trained."""

    parts: tuple[Part, ...] = ()

    def __init__(self, product: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.networks = {"product": product}

    def infer(self, left: Tensor, right: Tensor) -> Tensor:
        return self.networks["product"](left, right)


__all__ = ["Part", "Task", "build_task"]


def build_task(cell: Cell) -> Task:
    """Return the cell's task with freshly initialised networks.

    They are created on Keras's current device, in the types that `set_precision` set.
    """
    definition = build_model(cell, "keras")
    match MODELS[cell.model].task:
        case "image-classification" | "text-classification":
            return Classification(definition)
        case "image-translation":
            return ImageTranslation(definition, image_size=cell.input_size, seed=cell.seed)
        case "matrix-product":
            return MatrixProduct(definition)
