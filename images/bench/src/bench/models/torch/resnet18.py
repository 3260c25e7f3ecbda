"""Builds torchvision's ResNet18 for a cell."""

from torch import nn
from torchvision.models import resnet18

from bench.schema import Cell


def build(cell: Cell) -> nn.Module:
    """Return torchvision's ResNet18 with the ImageNet stem: 11,689,512 parameters at 1000 classes."""
    model: nn.Module = resnet18(weights=None, num_classes=cell.num_classes)
    return model
