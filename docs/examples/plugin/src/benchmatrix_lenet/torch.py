"""LeNet-5 in PyTorch."""

from torch import nn

from bench.schema import Cell


def build_lenet5(cell: Cell) -> nn.Module:
    """Return the network for images (batch, 3, size, size): 62,006 parameters at 32 px and 10 classes."""
    side = ((cell.input_size - 4) // 2 - 4) // 2
    return nn.Sequential(
        *(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(16 * side**2, 120), nn.ReLU()),
        *(nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, cell.num_classes)),
    )
