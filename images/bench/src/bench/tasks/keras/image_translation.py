"""Trains and runs CycleGAN's image translation in Keras.

Losses, weights and order as in the authors' code (github.com/junyanz/pytorch-CycleGAN-and-pix2pix, models/
cycle_gan_model.py): first both generators, with the discriminators frozen, then both discriminators, on pooled images.
Losses are computed in float32 at least, as PyTorch's autocast does.
"""

from collections.abc import Mapping

import keras
from keras import ops

from bench.tasks.keras.image_pool import ImagePool
from bench.tasks.keras.interface import Part, Tensor, Tensors
from bench.tasks.keras.precision import widen

CYCLE_WEIGHT = 10.0
IDENTITY_WEIGHT = 0.5  # times CYCLE_WEIGHT
DISCRIMINATOR_WEIGHT = 0.5  # halves the objective: discriminators learn at half the speed of the generators


class ImageTranslation:
    """A training step of CycleGAN; inference translates from a to b. Inputs: images of domains a and b, in [-1, 1]."""

    def __init__(self, networks: Mapping[str, keras.Model], *, image_size: int, seed: int) -> None:
        self.networks = dict(networks)
        self.parts: tuple[Part, ...] = (GeneratorPart(networks), DiscriminatorPart(networks, image_size, seed))

    def infer(self, images_a: Tensor, images_b: Tensor) -> Tensor:
        """Return the images of domain a as images of domain b."""
        return self.networks["generator_ab"](images_a, training=False)


class GeneratorPart:
    """Trains both generators: least-squares GAN loss, cycle consistency and identity."""

    state: tuple[keras.Variable, ...] = ()

    def __init__(self, networks: Mapping[str, keras.Model]) -> None:
        self.networks = (networks["generator_ab"], networks["generator_ba"])
        self._discriminators = (networks["discriminator_a"], networks["discriminator_b"])

    def compute_loss(self, *tensors: Tensor) -> tuple[Tensor, Tensors]:
        """Return the loss of both generators and the fakes (of a, of b) for the discriminators."""
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
        """Return the loss of both discriminators and no tensors for the next part."""
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
    """Return the mean absolute difference of two batches of images."""
    return ops.mean(ops.abs(widen(images) - widen(target)))
