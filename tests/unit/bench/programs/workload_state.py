"""What the workloads of all frameworks hold, as checks read and set it."""

from collections.abc import Mapping
from typing import Any


def find_networks(workload: Any) -> Mapping[str, Any]:
    """Return the networks, their variables as the last step left them. What is set counts in the next step.

    JAX's state is apart from the variables, which must not be read after a step: ask for the networks again.
    """
    if getattr(workload, "_state", None) is not None:
        for variable, value in zip(workload._variables, workload._state, strict=True):
            variable.assign(value)
        workload._state = None
    networks: Mapping[str, Any] = workload.task.networks
    return networks


def find_optimizers(workload: Any) -> list[Any]:
    find_networks(workload)
    found: list[Any] = getattr(workload, "optimizers", None) or [part.optimizer for part in workload.task.parts]
    return found


def read_losses(workload: Any) -> list[float]:
    """Return the losses of the last training step, one for each part, each the mean over the whole batch."""
    strategy = getattr(workload, "_strategy", None)
    return [float(strategy.reduce("MEAN", loss, axis=None) if strategy else loss) for loss in workload._outputs]
