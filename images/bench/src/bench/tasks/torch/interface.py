"""What a task in PyTorch offers: networks, the parts of a training step in their order, and inference."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

from torch import Tensor, nn

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
