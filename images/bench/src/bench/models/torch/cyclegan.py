"""Builds CycleGAN's generators and discriminators in PyTorch.

Architecture and initial weights as in the authors' code (github.com/junyanz/pytorch-CycleGAN-and-pix2pix, models/
networks.py; Zhu et al., arXiv 1703.10593, section 7.2): instance norm without affine parameters or statistics, so that
every convolution has a bias; weights N(0, 0.02), biases zero.
"""

from torch import Tensor, nn

from bench.schema import Cell

NUM_BLOCKS = 9


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions with reflection padding and instance norm, added to their input."""

    def __init__(self, num_channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(num_channels, num_channels, 3),
            nn.InstanceNorm2d(num_channels),
            nn.ReLU(inplace=True),
            nn.ReflectionPad2d(1),
            nn.Conv2d(num_channels, num_channels, 3),
            nn.InstanceNorm2d(num_channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return a map of x's shape."""
        summed: Tensor = x + self.layers(x)
        return summed


def build(cell: Cell) -> nn.ModuleDict:
    """Return generator_ab, generator_ba (11,378,179 parameters each) and discriminator_a, discriminator_b (2,764,737).

    Generators map images (batch, 3, size, size) to images in [-1, 1], size a multiple of 4. Discriminators map images
    to scores (batch, 1, n, n) of overlapping patches of 70 px; n = 30 at 256 px.
    """
    networks = {
        "generator_ab": build_generator(),
        "generator_ba": build_generator(),
        "discriminator_a": build_discriminator(),
        "discriminator_b": build_discriminator(),
    }
    return nn.ModuleDict(networks).apply(_initialize)


def build_generator() -> nn.Sequential:
    """Return c7s1-64, d128, d256, nine blocks R256, u128, u64, c7s1-3, as the paper's appendix writes it."""
    layers: list[nn.Module] = [nn.ReflectionPad2d(3), *_normalize(nn.Conv2d(3, 64, 7))]
    for num_channels in (64, 128):
        layers += _normalize(nn.Conv2d(num_channels, 2 * num_channels, 3, stride=2, padding=1))
    layers += [ResidualBlock(256) for _ in range(NUM_BLOCKS)]
    for num_channels in (256, 128):
        upsampling = nn.ConvTranspose2d(num_channels, num_channels // 2, 3, stride=2, padding=1, output_padding=1)
        layers += _normalize(upsampling)
    return nn.Sequential(*layers, nn.ReflectionPad2d(3), nn.Conv2d(64, 3, 7), nn.Tanh())


def build_discriminator() -> nn.Sequential:
    """Return C64 (without norm), C128, C256, C512 and a convolution to one score, kernels of 4: PatchGAN of 70 px."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 4, stride=2, padding=1), nn.LeakyReLU(0.2, inplace=True)]
    for num_channels, stride in ((64, 2), (128, 2), (256, 1)):
        layers.append(nn.Conv2d(num_channels, 2 * num_channels, 4, stride=stride, padding=1))
        layers += [nn.InstanceNorm2d(2 * num_channels), nn.LeakyReLU(0.2, inplace=True)]
    return nn.Sequential(*layers, nn.Conv2d(512, 1, 4, padding=1))


def _normalize(convolution: nn.Conv2d | nn.ConvTranspose2d) -> list[nn.Module]:
    return [convolution, nn.InstanceNorm2d(convolution.out_channels), nn.ReLU(inplace=True)]


def _initialize(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(module.weight, 0.0, 0.02)
        nn.init.zeros_(module.bias)
