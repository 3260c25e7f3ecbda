"""Builds torchvision's ViT-B/16 for a cell."""

from torch import nn
from torchvision.models import vit_b_16

from bench.schema import Cell


def build(cell: Cell) -> nn.Module:
    """Return torchvision's ViT-B/16 for images of `input_size`: 86,567,656 parameters at 224 px and 1000 classes."""
    model: nn.Module = vit_b_16(weights=None, image_size=cell.input_size, num_classes=cell.num_classes)
    return model
