"""Builds torchvision's VGG16 for a cell."""

from torch import nn
from torchvision.models import vgg16

from bench.schema import Cell


def build(cell: Cell) -> nn.Module:
    """Return torchvision's VGG16 with its two dropouts of 0.5: 138,357,544 parameters at 1000 classes, any size."""
    model: nn.Module = vgg16(weights=None, num_classes=cell.num_classes)
    return model
