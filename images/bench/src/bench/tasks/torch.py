"""Tasks in PyTorch: networks, the parts of a training step in their order, and inference."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, l1_loss, mse_loss

from bench.models import build_model
from bench.registry import MODELS
from bench.schema import Cell

Tensors = tuple[Tensor, ...]


class Part(nn.Module, ABC):
    """One loss, the networks that it trains (the module's parameters), and what it hands to the next part."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen: tuple[nn.Module, ...] = ()

    def freeze(self, *networks: nn.Module) -> None:
        """Name networks that the loss needs and that another part trains; they get no gradients in this part."""
        object.__setattr__(self, "frozen", networks)  # around nn.Module, which would count their parameters as its own

    @abstractmethod
    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensors]:
        """Return the loss (a scalar) of the inputs and the previous part's tensors; and the next part's tensors."""


class Task(Protocol):
    """The networks of a cell and what is done with them."""

    @property
    def networks(self) -> Mapping[str, nn.Module]:
        """The networks by their names."""

    parts: tuple[Part, ...]
    """Run in this order in every training step, each with its own optimiser; empty where nothing is trained."""

    def infer(self, *inputs: Tensor) -> Tensor:
        """Return the output for a step's inputs."""


class Classification:
    """Cross entropy of the model's logits, averaged over the batch. Inputs: samples and int64 labels (batch,)."""

    def __init__(self, model: nn.Module) -> None:
        self.networks = {"model": model}
        self.parts: tuple[Part, ...] = (ClassificationPart(model),)

    def infer(self, samples: Tensor, labels: Tensor) -> Tensor:
        logits: Tensor = self.networks["model"](samples)
        return logits


class ClassificationPart(Part):
    """The one part of a classifier's training step."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensors]:
        samples, labels = tensors
        return cross_entropy(self.model(samples), labels), ()


# CycleGAN's losses, weights and order as in the authors' code (github.com/junyanz/pytorch-CycleGAN-and-pix2pix, models/
# cycle_gan_model.py): first both generators, with the discriminators frozen, then both discriminators, on pooled
# images.
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
        images: Tensor = self.networks["generator_ab"](images_a)
        return images


class GeneratorPart(Part):
    """Trains both generators: least-squares GAN loss, cycle consistency and identity."""

    def __init__(self, networks: nn.ModuleDict) -> None:
        super().__init__()
        self.generator_ab, self.generator_ba = networks["generator_ab"], networks["generator_ba"]
        self.freeze(networks["discriminator_a"], networks["discriminator_b"])

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensors]:
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


class MatrixProduct:
    """The product of two stacks of square matrices; nothing is trained."""

    parts: tuple[Part, ...] = ()

    def __init__(self, product: nn.Module) -> None:
        self.networks = {"product": product}

    def infer(self, left: Tensor, right: Tensor) -> Tensor:
        product: Tensor = self.networks["product"](left, right)
        return product


__all__ = ["Part", "Task", "build_task"]


def build_task(cell: Cell) -> Task:
    definition = build_model(cell, "torch")
    match MODELS[cell.model].task:
        case "image-classification" | "text-classification":
            return Classification(definition)
        case "image-translation":
            return ImageTranslation(definition, image_size=cell.input_size)
        case "matrix-product":
            return MatrixProduct(definition)
