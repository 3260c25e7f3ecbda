"""What a task in Keras offers: networks, the parts of a training step in their order, and inference."""

from collections.abc import Mapping
from typing import Any, Protocol

import keras

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
    """Return the variables that a part's optimiser updates."""
    return [variable for network in part.networks for variable in network.trainable_variables]


def list_variables(task: Task) -> list[keras.Variable]:
    """Return every variable that a step reads or changes, but the optimisers'."""
    networks = [network for network in task.networks.values() if isinstance(network, keras.Layer)]
    weights = [variable for network in networks for variable in network.variables]
    return weights + [variable for part in task.parts for variable in part.state]
