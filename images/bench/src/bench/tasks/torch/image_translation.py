"""Trains and runs CycleGAN's image translation in PyTorch.

Losses, weights and order as in the authors' code (github.com/junyanz/pytorch-CycleGAN-and-pix2pix, models/
cycle_gan_model.py): first both generators, with the discriminators frozen, then both discriminators, on pooled images.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import l1_loss, mse_loss

from bench.tasks.torch.interface import Part, Tensors

CYCLE_WEIGHT = 10.0
IDENTITY_WEIGHT = 0.5  # times CYCLE_WEIGHT
DISCRIMINATOR_WEIGHT = 0.5  # halves the objective: discriminators learn at half the speed of the generators
POOL_SIZE = 50


class ImageTranslation:
    """A training step of CycleGAN; inference translates from a to b. Inputs: images of domains a and b, in [-1, 1]."""

    def __init__(self, networks: nn.ModuleDict, *, image_size: int) -> None:
        self.networks = dict(networks.items())
        self.parts: tuple[Part, ...] = (GeneratorPart(networks), DiscriminatorPart(networks, image_size))

    def infer(self, images_a: Tensor, images_b: Tensor) -> Tensor:
        """Return the images of domain a as images of domain b."""
        images: Tensor = self.networks["generator_ab"](images_a)
        return images


class GeneratorPart(Part):
    """Trains both generators: least-squares GAN loss, cycle consistency and identity."""

    def __init__(self, networks: nn.ModuleDict) -> None:
        super().__init__()
        self.generator_ab, self.generator_ba = networks["generator_ab"], networks["generator_ba"]
        self.freeze(networks["discriminator_a"], networks["discriminator_b"])

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensors]:
        """Return the loss of both generators and the fakes (of a, of b) for the discriminators."""
        images_a, images_b = tensors
        discriminator_a, discriminator_b = self.frozen
        fake_b, fake_a = self.generator_ab(images_a), self.generator_ba(images_b)
        adversarial = compute_gan_loss(discriminator_b(fake_b), is_real=True)
        adversarial = adversarial + compute_gan_loss(discriminator_a(fake_a), is_real=True)
        cycle = l1_loss(self.generator_ba(fake_b), images_a) + l1_loss(self.generator_ab(fake_a), images_b)
        identity = l1_loss(self.generator_ab(images_b), images_b) + l1_loss(self.generator_ba(images_a), images_a)
        loss = adversarial + CYCLE_WEIGHT * (cycle + IDENTITY_WEIGHT * identity)
        return loss, (fake_a.detach(), fake_b.detach())


class DiscriminatorPart(Part):
    """Trains both discriminators on real images and on fakes from the pools."""

    def __init__(self, networks: nn.ModuleDict, image_size: int) -> None:
        super().__init__()
        self.discriminator_a, self.discriminator_b = networks["discriminator_a"], networks["discriminator_b"]
        self.pool_a, self.pool_b = ImagePool(image_size), ImagePool(image_size)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensors]:
        """Return the loss of both discriminators and no tensors for the next part."""
        images_a, images_b, fake_a, fake_b = tensors
        loss_a = self._compute_loss(self.discriminator_a, images_a, self.pool_a(fake_a))
        loss_b = self._compute_loss(self.discriminator_b, images_b, self.pool_b(fake_b))
        return DISCRIMINATOR_WEIGHT * (loss_a + loss_b), ()

    def _compute_loss(self, discriminator: nn.Module, real: Tensor, fake: Tensor) -> Tensor:
        loss = compute_gan_loss(discriminator(real), is_real=True)
        return loss + compute_gan_loss(discriminator(fake), is_real=False)


class ImagePool(nn.Module):
    """The last fakes (Shrivastava et al., arXiv 1612.07828): filled first, then each new one is swapped half the time.

    Everything, the drawing of lots too, stays on the device: a step can be captured as one CUDA graph.
    """

    images: Tensor
    num_images: Tensor

    def __init__(self, image_size: int) -> None:
        super().__init__()
        self.register_buffer("images", torch.zeros(POOL_SIZE, 3, image_size, image_size))
        self.register_buffer("num_images", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:
        """Return a batch (batch, 3, size, size): each image itself, or one from the pool in its place."""
        return torch.stack([self._exchange(image) for image in images])

    def _exchange(self, image: Tensor) -> Tensor:
        is_full = self.num_images >= POOL_SIZE
        lot = torch.randint(POOL_SIZE, (1,), device=image.device)
        slot = torch.where(is_full, lot, self.num_images.clamp(max=POOL_SIZE - 1))
        swaps = is_full & (torch.rand((), device=image.device) < 0.5)
        old, new = self.images.index_select(0, slot)[0], image.to(self.images.dtype)
        self.images.index_copy_(0, slot, torch.where(is_full & ~swaps, old, new)[None])
        self.num_images.add_(1).clamp_(max=POOL_SIZE)
        return torch.where(swaps, old, new)


def compute_gan_loss(prediction: Tensor, *, is_real: bool) -> Tensor:
    """Return the least-squares GAN loss (Mao et al., arXiv 1611.04076): mean squared distance to 1 (real) or 0."""
    return mse_loss(prediction, torch.full_like(prediction, float(is_real)))
