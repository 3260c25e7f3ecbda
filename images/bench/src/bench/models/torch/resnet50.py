"""Builds torchvision's ResNet50 for a cell."""

from torch import nn
from torchvision.models import resnet50

from bench.schema import Cell


def build(cell: Cell) -> nn.Module:
    """Return torchvision's ResNet50, v1.5 (stride in the 3x3 convolutions): 25,557,032 parameters at 1000 classes."""
    model: nn.Module = resnet50(weights=None, num_classes=cell.num_classes)
    return model
