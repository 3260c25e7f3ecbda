"""Tasks in PyTorch: networks, the parts of a training step in their order, and inference."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, l1_loss, mse_loss

from bench.models import build_model
from bench.registry import MODELS
from bench.schema import Cell
from bench.tasks.cyclegan import POOL_SIZE, compute_discriminator_loss, compute_generator_loss
from bench.tasks.inputs import find_position

Tensors = tuple[Tensor, ...]


class Part(nn.Module):
    """One loss, the networks that it trains (the module's parameters), and what it hands to the next part.

    Called with the inputs and the previous part's tensors, it returns the loss (a scalar) and the next part's tensors.
    """

    frozen: tuple[nn.Module, ...] = ()
    """Networks that the loss needs and that another part trains; they get no gradients in this part. A tuple: of a
    module, nn.Module would count the parameters as its own."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """The networks of a cell and what is done with them."""

    networks: Mapping[str, nn.Module]
    infer: Callable[..., Tensor]
    """Returns the output for a step's inputs."""
    parts: tuple[Part, ...]
    """Run in this order in every training step, each with its own optimiser; empty where nothing is trained."""


class ClassificationPart(Part):
    """Cross entropy of the model's logits, averaged over the batch. Inputs: samples and int64 labels (batch,)."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensors]:
        samples, labels = tensors
        return cross_entropy(self.model(samples), labels), ()


class GeneratorPart(Part):
    """Trains CycleGAN's generators. Inputs: images of domains a and b, in [-1, 1]."""

    def __init__(self, networks: nn.ModuleDict) -> None:
        super().__init__()
        self.generator_ab, self.generator_ba = networks["generator_ab"], networks["generator_ba"]
        self.frozen = (networks["discriminator_a"], networks["discriminator_b"])

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensors]:
        generators = (self.generator_ab, self.generator_ba)
        loss, (fake_a, fake_b) = compute_generator_loss(
            generators, self.frozen, tensors, l1=l1_loss, gan=compute_gan_loss
        )
        return loss, (fake_a.detach(), fake_b.detach())


class DiscriminatorPart(Part):
    """Trains both discriminators on real images and on fakes from the pools."""

    def __init__(self, networks: nn.ModuleDict, image_size: int) -> None:
        super().__init__()
        self.discriminator_a, self.discriminator_b = networks["discriminator_a"], networks["discriminator_b"]
        self.pool_a, self.pool_b = ImagePool(image_size), ImagePool(image_size)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensors]:
        fakes = (self.pool_a(tensors[2]), self.pool_b(tensors[3]))
        discriminators = (self.discriminator_a, self.discriminator_b)
        return compute_discriminator_loss(discriminators, tensors[:2], fakes, gan=compute_gan_loss), ()


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


@contextmanager
def make_tensors(device: torch.device, dtype: torch.dtype) -> Iterator[None]:
    """Make new tensors on `device`, floating-point ones in `dtype`, as long as the context lasts."""
    torch.set_default_dtype(dtype)
    try:
        with device:
            yield
    finally:
        torch.set_default_dtype(torch.float32)


def build_task(cell: Cell) -> Task:
    model = build_model(cell, "torch")
    match MODELS[cell.model].task:
        case "image-classification" | "text-classification":
            parts = (ClassificationPart(model),)
            return Task(networks={"model": model}, infer=lambda samples, labels: model(samples), parts=parts)
        case "image-translation":
            generate = model["generator_ab"]
            return Task(
                networks=dict(model.items()),
                infer=lambda images_a, images_b: generate(images_a),
                parts=(GeneratorPart(model), DiscriminatorPart(model, cell.input_size)),
            )
        case "matrix-product":
            return Task(networks={"product": model}, infer=model, parts=())
        case "text-generation":
            return Task(networks={"model": model}, infer=partial(model, position=find_position(cell)), parts=())
