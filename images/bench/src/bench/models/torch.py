"""The models in PyTorch, each as a torch.nn.Module. torchvision is imported by those that are its own."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention, silu

from bench.models.sizes import CONV6_STAGES, GAN_WIDTH, GENERATOR_BLOCKS, RMS_EPSILON, TEXT_ENCODER, make_rotation
from bench.registry import DECODERS, Decoder
from bench.schema import Cell
from bench.tasks.inputs import VOCABULARY_SIZE


def build_conv6(cell: Cell) -> nn.Module:
    """Return the Conv-6 of Frankle and Carbin (arXiv 1803.03635, figure 2).

    Three pairs of 3x3 convolutions (64, 128, 256 channels), max-pooling after each pair, dense 256-256-classes, ReLU;
    Gaussian Glorot weights, as the same figure says. 2,262,602 parameters at 32 px and 10 classes.
    """
    layers: list[nn.Module] = []
    num_channels = 3
    for width, _ in CONV6_STAGES:
        layers += [nn.Conv2d(num_channels, width, 3, padding=1), nn.ReLU(inplace=True)]
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
        num_channels = width
    side = cell.input_size // 2 ** len(CONV6_STAGES)
    layers += [nn.Flatten(), nn.Linear(num_channels * side * side, 256), nn.ReLU(inplace=True)]
    layers += [nn.Linear(256, 256), nn.ReLU(inplace=True), nn.Linear(256, cell.num_classes)]
    return nn.Sequential(*layers).apply(_draw(nn.init.xavier_normal_))


def _draw(draw: Callable[[Tensor], Tensor]) -> Callable[[nn.Module], None]:
    """Return a function that draws the weights of a layer, and sets its biases to zero."""

    def initialize(module: nn.Module) -> None:
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d | nn.Linear | nn.Embedding):
            draw(module.weight)
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d | nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    return initialize


_draw_normal_002 = _draw(partial(nn.init.normal_, std=0.02))


def _take_torchvisions(name: str, cell: Cell, **options: int) -> nn.Module:
    from torchvision import models

    return getattr(models, name)(weights=None, num_classes=cell.num_classes, **options)


def build_vgg16(cell: Cell) -> nn.Module:
    """Return torchvision's VGG16 with its two dropouts of 0.5: 138,357,544 parameters at 1000 classes, any size."""
    return _take_torchvisions("vgg16", cell)


def build_resnet18(cell: Cell) -> nn.Module:
    """Return torchvision's ResNet18 with the ImageNet stem: 11,689,512 parameters at 1000 classes."""
    return _take_torchvisions("resnet18", cell)


def build_resnet18_cifar(cell: Cell) -> nn.Module:
    """Return ResNet18 with a 3x3 stem of stride 1 and no max-pool: 11,173,962 parameters at 10 classes.

    The stem that He et al. use for 32 px (arXiv 1512.03385, section 4.2), initialised as torchvision does.
    """
    model = _take_torchvisions("resnet18", cell)
    model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(model.conv1.weight, mode="fan_out", nonlinearity="relu")
    model.maxpool = nn.Identity()
    return model


def build_resnet50(cell: Cell) -> nn.Module:
    """Return torchvision's ResNet50, v1.5 (stride in the 3x3 convolutions): 25,557,032 parameters at 1000 classes."""
    return _take_torchvisions("resnet50", cell)


def build_vit_b_16(cell: Cell) -> nn.Module:
    """Return torchvision's ViT-B/16 for images of `input_size`: 86,567,656 parameters at 224 px and 1000 classes."""
    return _take_torchvisions("vit_b_16", cell, image_size=cell.input_size)


# The text classifier, a definition of this project: token embeddings (20,000 x 256) plus learned positions (length x
# 256); four layers, each x + attention(norm(x)) with 4 heads of 64, then x + feed-forward(norm(x)) of width 1024 with
# the exact GELU; a last norm, the mean over the tokens, one dense layer. Norms are layer norms with epsilon 1e-5, all
# dense layers have biases, no dropout, no mask: every text fills its length. 8,312,834 parameters at 128 tokens and 2
# classes. Weights N(0, 0.02), biases zero, as BERT's in Hugging Face's transformers (BertConfig.initializer_range).
class TextClassifier(nn.Module):
    """The whole model: maps tokens (batch, length) of int64 to logits (batch, classes)."""

    def __init__(self, length: int, num_classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY_SIZE, TEXT_ENCODER.width)
        self.pos_embedding = nn.Parameter(torch.empty(1, length, TEXT_ENCODER.width).normal_(0.0, 0.02))
        self.layers = nn.Sequential(*(EncoderLayer() for _ in range(TEXT_ENCODER.num_layers)))
        self.norm = nn.LayerNorm(TEXT_ENCODER.width)
        self.head = nn.Linear(TEXT_ENCODER.width, num_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.layers(self.embedding(tokens) + self.pos_embedding)
        return self.head(self.norm(x).mean(dim=1))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each behind a norm and added to its input: (batch, length, 256)."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(TEXT_ENCODER.width)
        self.query_key_value = nn.Linear(TEXT_ENCODER.width, 3 * TEXT_ENCODER.width)
        self.projection = nn.Linear(TEXT_ENCODER.width, TEXT_ENCODER.width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(TEXT_ENCODER.width),
            nn.Linear(TEXT_ENCODER.width, TEXT_ENCODER.mlp_width),
            nn.GELU(),
            nn.Linear(TEXT_ENCODER.mlp_width, TEXT_ENCODER.width),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self._attend(self.attention_norm(x))
        return x + self.feed_forward(x)

    def _attend(self, x: Tensor) -> Tensor:
        # (batch, length, 3, heads, 64) -> three of (batch, heads, length, 64)
        heads = self.query_key_value(x).unflatten(-1, (3, TEXT_ENCODER.num_heads, -1)).transpose(1, 3)
        attended = scaled_dot_product_attention(*heads.unbind(dim=2))
        return self.projection(attended.transpose(1, 2).flatten(start_dim=2))


def build_text_classifier(cell: Cell) -> nn.Module:
    assert cell.num_classes is not None
    return TextClassifier(cell.input_size, cell.num_classes).apply(_draw_normal_002)


# CycleGAN: architecture and initial weights as in the authors' code (github.com/junyanz/pytorch-CycleGAN-and-pix2pix,
# models/ networks.py; Zhu et al., arXiv 1703.10593, section 7.2): instance norm without affine parameters or
# statistics, so that every convolution has a bias; weights N(0, 0.02), biases zero.
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
        return x + self.layers(x)


def build_cyclegan(cell: Cell) -> nn.ModuleDict:
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
    return nn.ModuleDict(networks).apply(_draw_normal_002)


def build_generator() -> nn.Sequential:
    """Return c7s1-64, d128, d256, nine blocks R256, u128, u64, c7s1-3, as the paper's appendix writes it."""
    layers: list[nn.Module] = [nn.ReflectionPad2d(3), *_normalize_and_rectify(nn.Conv2d(3, GAN_WIDTH, 7))]
    for num_channels in (GAN_WIDTH, 2 * GAN_WIDTH):
        layers += _normalize_and_rectify(nn.Conv2d(num_channels, 2 * num_channels, 3, stride=2, padding=1))
    layers += [ResidualBlock(4 * GAN_WIDTH) for _ in range(GENERATOR_BLOCKS)]
    for num_channels in (4 * GAN_WIDTH, 2 * GAN_WIDTH):
        upsampling = nn.ConvTranspose2d(num_channels, num_channels // 2, 3, stride=2, padding=1, output_padding=1)
        layers += _normalize_and_rectify(upsampling)
    return nn.Sequential(*layers, nn.ReflectionPad2d(3), nn.Conv2d(GAN_WIDTH, 3, 7), nn.Tanh())


def build_discriminator() -> nn.Sequential:
    """Return C64 (without norm), C128, C256, C512 and a convolution to one score, kernels of 4: PatchGAN of 70 px."""
    layers: list[nn.Module] = [nn.Conv2d(3, GAN_WIDTH, 4, stride=2, padding=1), nn.LeakyReLU(0.2, inplace=True)]
    for num_channels, stride in ((GAN_WIDTH, 2), (2 * GAN_WIDTH, 2), (4 * GAN_WIDTH, 1)):
        layers.append(nn.Conv2d(num_channels, 2 * num_channels, 4, stride=stride, padding=1))
        layers += [nn.InstanceNorm2d(2 * num_channels), nn.LeakyReLU(0.2, inplace=True)]
    return nn.Sequential(*layers, nn.Conv2d(8 * GAN_WIDTH, 1, 4, padding=1))


def _normalize_and_rectify(convolution: nn.Conv2d | nn.ConvTranspose2d) -> list[nn.Module]:
    return [convolution, nn.InstanceNorm2d(convolution.out_channels), nn.ReLU(inplace=True)]


class MatrixProduct(nn.Module):
    """The product of two stacks of square matrices."""

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return left @ right


def build_matmul(cell: Cell) -> nn.Module:
    return MatrixProduct()


# Decoders of Llama's shape (arXiv 2302.13971, section 2.2; arXiv 2407.21783, table 3). The projections of queries, keys
# and values are one product, and so are the first two of SwiGLU. Weights N(0, 0.02), norms 1, no biases.


class LanguageModel(nn.Module):
    """Maps tokens (batch, number) to the logits (batch, vocabulary) of the token that follows the last of them.

    Keys and values of up to `capacity` positions are kept from call to call. Until something is written the cache holds
    standard normal values: a step of decoding takes as long whatever they are.
    """

    rotation: Tensor

    def __init__(self, shape: Decoder, batch_size: int, capacity: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.vocabulary_size, shape.width)
        self.layers = nn.ModuleList(DecoderLayer(shape, batch_size, capacity) for _ in range(shape.num_layers))
        self.norm = nn.RMSNorm(shape.width, RMS_EPSILON)
        self.head = nn.Linear(shape.width, shape.vocabulary_size, bias=False)
        if shape.is_tied:
            self.head.weight = self.embedding.weight
        self.register_buffer("rotation", torch.tensor(make_rotation(shape, capacity)), persistent=False)

    def forward(self, tokens: Tensor, position: int = 0) -> Tensor:
        """`position`: that of the first token, 0 where there are several."""
        x = self.embedding(tokens)
        rotation = self.rotation[:, position : position + tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, rotation, position)
        logits: Tensor = self.head(self.norm(x[:, -1]))
        return logits


class DecoderLayer(nn.Module):
    """Grouped-query attention over all positions so far, and SwiGLU, each behind a norm and added to its input.

    Keys and values (batch, kv heads, capacity, head width) are tensors of each layer: torch.compile writes into one in
    place, but copies all of it where it is a part of another.
    """

    keys: Tensor
    values: Tensor

    def __init__(self, shape: Decoder, batch_size: int, capacity: int) -> None:
        super().__init__()
        for name in ("keys", "values"):
            cache = torch.empty(batch_size, shape.num_kv_heads, capacity, shape.head_width)
            self.register_buffer(name, cache.normal_(), persistent=False)
        self.head_width = shape.head_width
        self.parts = (shape.num_heads, shape.num_kv_heads, shape.num_kv_heads)
        self.attention_norm = nn.RMSNorm(shape.width, RMS_EPSILON)
        self.query_key_value = nn.Linear(shape.width, shape.width + 2 * shape.kv_width, bias=False)
        self.projection = nn.Linear(shape.width, shape.width, bias=False)
        self.mlp_norm = nn.RMSNorm(shape.width, RMS_EPSILON)
        self.gate_up = nn.Linear(shape.width, 2 * shape.mlp_width, bias=False)
        self.down = nn.Linear(shape.mlp_width, shape.width, bias=False)

    def forward(self, x: Tensor, rotation: Tensor, position: int) -> Tensor:
        x = x + self.projection(self._attend(self.attention_norm(x), rotation, position))
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=-1)
        summed: Tensor = x + self.down(silu(gate) * up)
        return summed

    def _attend(self, x: Tensor, rotation: Tensor, position: int) -> Tensor:
        # (batch, number, heads, head width) -> (batch, heads, number, head width)
        heads = self.query_key_value(x).unflatten(-1, (sum(self.parts), self.head_width)).transpose(1, 2)
        query, key, value = heads.split(self.parts, dim=1)
        query, key = rotate(query, rotation), rotate(key, rotation)
        end = position + x.shape[1]
        self.keys[:, :, position:end] = key
        self.values[:, :, position:end] = value
        cached = self.keys[:, :, :end], self.values[:, :, :end]
        if x.shape[1] > 1:
            attended = scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        elif x.is_cuda and x.dtype in (torch.float16, torch.bfloat16):
            attended = scaled_dot_product_attention(query, *cached, enable_gqa=True)
        else:
            # No fused kernel shares keys and values among heads in float32, and copying them for each takes longest.
            # The queries that share them take the place of positions.
            groups = query.unflatten(1, (key.shape[1], -1)).squeeze(3)
            attended = scaled_dot_product_attention(groups, *cached).flatten(1, 2).unsqueeze(2)
        return attended.transpose(1, 2).flatten(start_dim=2)


def rotate(heads: Tensor, rotation: Tensor) -> Tensor:
    """Return heads (batch, heads, number, head width) turned by their positions, value i with value i + width / 2."""
    cosine, sine = rotation
    left, right = heads.chunk(2, dim=-1)
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine], dim=-1)


def build_llama(cell: Cell) -> nn.Module:
    return LanguageModel(DECODERS[cell.model], cell.batch_size, cell.input_size).apply(_draw_normal_002)
