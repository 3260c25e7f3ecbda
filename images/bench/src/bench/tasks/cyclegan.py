"""CycleGAN's losses, for any framework's networks and tensors: weights and order as in the authors' code.

github.com/junyanz/pytorch-CycleGAN-and-pix2pix, models/cycle_gan_model.py: first both generators, with the
discriminators frozen, then both discriminators, on pooled images.
"""

from collections.abc import Callable, Sequence
from typing import Any

CYCLE_WEIGHT = 10.0
IDENTITY_WEIGHT = 0.5  # times CYCLE_WEIGHT
DISCRIMINATOR_WEIGHT = 0.5  # halves the objective: discriminators learn at half the speed of the generators
POOL_SIZE = 50

Network = Callable[[Any], Any]


def compute_generator_loss(
    generators: Sequence[Network], discriminators: Sequence[Network], images: Sequence[Any], *, l1: Any, gan: Any
) -> tuple[Any, tuple[Any, Any]]:
    """Return least-squares GAN loss, cycle consistency and identity of both generators, and the fakes of both domains.

    Generators: a to b, b to a. `l1(images, target)` and `gan(prediction, is_real=...)` are means over the batch.
    """
    to_b, to_a = generators
    judge_a, judge_b = discriminators
    images_a, images_b = images
    fake_b, fake_a = to_b(images_a), to_a(images_b)
    adversarial = gan(judge_b(fake_b), is_real=True) + gan(judge_a(fake_a), is_real=True)
    cycle = l1(to_a(fake_b), images_a) + l1(to_b(fake_a), images_b)
    identity = l1(to_b(images_b), images_b) + l1(to_a(images_a), images_a)
    return adversarial + CYCLE_WEIGHT * (cycle + IDENTITY_WEIGHT * identity), (fake_a, fake_b)


def compute_discriminator_loss(
    discriminators: Sequence[Network], reals: Sequence[Any], fakes: Sequence[Any], *, gan: Any
) -> Any:
    losses = [
        gan(judge(real), is_real=True) + gan(judge(fake), is_real=False)
        for judge, real, fake in zip(discriminators, reals, fakes, strict=True)
    ]
    return DISCRIMINATOR_WEIGHT * (losses[0] + losses[1])
