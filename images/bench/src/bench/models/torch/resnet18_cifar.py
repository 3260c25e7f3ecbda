"""Builds torchvision's ResNet18 with the CIFAR stem for a cell."""

from typing import Any

from torch import nn
from torchvision.models import resnet18

from bench.schema import Cell


def build(cell: Cell) -> nn.Module:
    """Return ResNet18 with a 3x3 stem of stride 1 and no max-pool: 11,173,962 parameters at 10 classes.

    The stem that He et al. use for 32 px (arXiv 1512.03385, section 4.2), initialised as torchvision does.
    """
    model: Any = resnet18(weights=None, num_classes=cell.num_classes)
    model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(model.conv1.weight, mode="fan_out", nonlinearity="relu")
    model.maxpool = nn.Identity()
    built: nn.Module = model
    return built
