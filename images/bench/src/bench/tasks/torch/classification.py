"""Trains and runs classifiers of images or texts in PyTorch."""

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bench.tasks.torch.interface import Part, Tensors


class Classification:
    """Cross entropy of the model's logits, averaged over the batch. Inputs: samples and int64 labels (batch,)."""

    def __init__(self, model: nn.Module) -> None:
        self.networks = {"model": model}
        self.parts: tuple[Part, ...] = (ClassificationPart(model),)

    def infer(self, samples: Tensor, labels: Tensor) -> Tensor:
        """Return the logits (batch, classes)."""
        logits: Tensor = self.networks["model"](samples)
        return logits


class ClassificationPart(Part):
    """The one part of a classifier's training step."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensors]:
        """Return the mean cross entropy in float32 (by autocast) and no tensors for the next part."""
        samples, labels = tensors
        return cross_entropy(self.model(samples), labels), ()
