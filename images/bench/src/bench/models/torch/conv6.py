"""Builds Conv6 in PyTorch."""

from torch import nn

from bench.schema import Cell

WIDTHS = (64, 128, 256)


def build(cell: Cell) -> nn.Module:
    """Return the Conv-6 of Frankle and Carbin (arXiv 1803.03635, figure 2).

    Three pairs of 3x3 convolutions (64, 128, 256 channels), max-pooling after each pair, dense 256-256-classes, ReLU.
    2,262,602 parameters at 32 px and 10 classes.
    """
    layers: list[nn.Module] = []
    num_channels = 3
    for width in WIDTHS:
        layers += [nn.Conv2d(num_channels, width, 3, padding=1), nn.ReLU(inplace=True)]
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
        num_channels = width
    side = cell.input_size // 2 ** len(WIDTHS)
    layers += [nn.Flatten(), nn.Linear(num_channels * side * side, 256), nn.ReLU(inplace=True)]
    layers += [nn.Linear(256, 256), nn.ReLU(inplace=True), nn.Linear(256, cell.num_classes)]
    return nn.Sequential(*layers).apply(_initialize)


def _initialize(module: nn.Module) -> None:
    """Draw Gaussian Glorot weights, as the same figure says; set biases to zero."""
    if isinstance(module, nn.Conv2d | nn.Linear):
        nn.init.xavier_normal_(module.weight)
        nn.init.zeros_(module.bias)
