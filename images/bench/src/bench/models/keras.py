"""The models in Keras 3, layer by layer the same as in bench.models.torch."""

import math
from typing import Any

import keras
from keras import layers, ops
from keras.initializers import GlorotUniform, RandomNormal, RandomUniform, VarianceScaling

from bench.schema import Cell
from bench.tasks.inputs import VOCABULARY_SIZE


def he_normal_fan_out() -> Any:
    """Return PyTorch's kaiming_normal_(mode="fan_out"): normal, variance 2 / fan out (Keras's HeNormal truncates)."""
    return VarianceScaling(2.0, mode="fan_out", distribution="untruncated_normal")


def glorot_normal() -> Any:
    """Return PyTorch's xavier_normal_: normal, variance 2 / (fan in + fan out) (Keras's GlorotNormal truncates)."""
    return VarianceScaling(1.0, mode="fan_avg", distribution="untruncated_normal")


def torch_uniform(num_inputs: int) -> Any:
    """Return what torch.nn.Linear draws weights and biases from: uniform within +-1 / sqrt(num_inputs)."""
    bound = 1 / math.sqrt(num_inputs)
    return RandomUniform(-bound, bound)


def make_image_input(size: int) -> Any:
    """Return the input for images (batch, size, size, 3), in the dtype that the layers compute in.

    An input of float32 would turn half-precision images into float32, and every layer back.
    """
    return keras.Input((size, size, 3), dtype=keras.config.dtype_policy().compute_dtype)


def convolve(x: Any, num_channels: int, kernel_size: int, *, padding: int, stride: int = 1, **options: Any) -> Any:
    """Return a convolution of x with `padding` zeros on each side, as PyTorch pads. `options` are those of Conv2D.

    Keras's "same" is used where it is that very padding, which spares a copy of x. In general it is not: it pads just
    enough for ceil(side / stride) outputs, the odd zero behind (https://www.tensorflow.org/api_docs/python/tf/nn,
    "Notes on padding").
    """
    side = x.shape[1]
    same_padding = max((-(-side // stride) - 1) * stride + kernel_size - side, 0)
    if padding and same_padding != 2 * padding:
        x = layers.ZeroPadding2D(padding)(x)
    padding_mode = "same" if padding and same_padding == 2 * padding else "valid"
    return layers.Conv2D(num_channels, kernel_size, strides=stride, padding=padding_mode, **options)(x)


def normalize_batch(x: Any, cell: Cell) -> Any:
    """Apply batch normalisation with PyTorch's momentum and epsilon: Keras's layer, or TensorFlow's in `fused-norm`."""
    if cell.mode == "fused-norm":
        from bench.models.fused_norm import FusedBatchNormalization  # only where TensorFlow is Keras's backend

        return FusedBatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


CONV6_WIDTHS = (64, 128, 256)


def build_conv6(cell: Cell) -> keras.Model:
    """Return the Conv-6 of Frankle and Carbin, channels last: 2,262,602 parameters at 32 px and 10 classes.

    The flattened features are ordered height, width, channel, PyTorch's channel, height, width: weights copied across
    must be permuted in the first dense layer.
    """
    inputs = make_image_input(cell.input_size)
    x = inputs
    for width in CONV6_WIDTHS:
        for _ in range(2):
            # At stride 1 "same" is PyTorch's padding of 1.
            x = layers.Conv2D(width, 3, padding="same", activation="relu", kernel_initializer=glorot_normal())(x)
        x = layers.MaxPooling2D(2)(x)
    x = layers.Flatten()(x)
    for _ in range(2):
        x = layers.Dense(256, activation="relu", kernel_initializer=glorot_normal())(x)
    return keras.Model(inputs, layers.Dense(cell.num_classes, kernel_initializer=glorot_normal())(x))


# (channels, convolutions) of the five stages, each ended by a max-pool: configuration D of arXiv 1409.1556, table 1.
VGG_STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
# Side of the feature map that the dense layers take: that of 224 px. torchvision averages others to it.
DENSE_SIDE = 7
DROPOUT_RATE = 0.5


def build_vgg16(cell: Cell) -> keras.Model:
    """Return VGG16, channels last: 138,357,544 parameters at 1000 classes and any size.

    Weights are drawn as torchvision draws them (torchvision/models/vgg.py): convolutions He-normal over the fan out,
    dense layers N(0, 0.01), zero biases. Weights copied across must be permuted in the first dense layer.
    """
    inputs = make_image_input(cell.input_size)
    x = inputs
    for num_channels, num_convolutions in VGG_STAGES:
        for _ in range(num_convolutions):
            # At stride 1 "same" is PyTorch's padding of 1.
            initializer = he_normal_fan_out()
            x = layers.Conv2D(num_channels, 3, padding="same", activation="relu", kernel_initializer=initializer)(x)
        x = layers.MaxPooling2D(2)(x)
    if x.shape[1] != DENSE_SIDE:
        x = layers.AdaptiveAveragePooling2D(DENSE_SIDE)(x)
    x = layers.Flatten()(x)
    for _ in range(2):
        x = layers.Dropout(DROPOUT_RATE)(_connect_vgg(x, 4096, activation="relu"))
    return keras.Model(inputs, _connect_vgg(x, cell.num_classes))


def _connect_vgg(x: Any, num_outputs: int | None, **options: Any) -> Any:
    return layers.Dense(num_outputs, kernel_initializer=RandomNormal(stddev=0.01), **options)(x)


# (channels, stride of the first block) of the four stages, two basic blocks each.
BASIC_STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))


def build_resnet18(cell: Cell) -> keras.Model:
    """Return ResNet18 with the ImageNet stem, channels last: 11,689,512 trainable parameters at 1000 classes.

    As in torchvision: zero padding on both sides (Keras's "same" pads one side only at stride 2), batch norm with
    epsilon 1e-5 and momentum 0.9 (PyTorch's 0.1), convolutions without bias, He initialisation over the fan out, the
    dense layer drawn as torch.nn.Linear draws it. One difference remains: the running variance is that of n values in
    Keras, PyTorch's that of n - 1.
    """
    inputs = make_image_input(cell.input_size)
    return keras.Model(inputs, classify(add_stem(inputs, cell), cell))


def add_stem(images: Any, cell: Cell) -> Any:
    x = layers.ReLU()(convolve_and_normalize(images, cell, 64, 7, stride=2))
    # Padding with zeros equals PyTorch's padding with minus infinity, since no value after a ReLU is below zero.
    return layers.MaxPooling2D(3, strides=2)(layers.ZeroPadding2D(1)(x))


def classify(x: Any, cell: Cell) -> Any:
    for num_channels, stride in BASIC_STAGES:
        x = _add_basic_block(x, cell, num_channels, stride)
        x = _add_basic_block(x, cell, num_channels, 1)
    return add_head(x, cell)


def add_head(x: Any, cell: Cell) -> Any:
    x = layers.GlobalAveragePooling2D()(x)
    weights, bias = (torch_uniform(x.shape[-1]) for _ in range(2))
    return layers.Dense(cell.num_classes, kernel_initializer=weights, bias_initializer=bias)(x)


def convolve_and_normalize(x: Any, cell: Cell, num_channels: int, kernel_size: int, stride: int = 1) -> Any:
    x = convolve(
        x,
        num_channels,
        kernel_size,
        padding=kernel_size // 2,
        stride=stride,
        use_bias=False,
        kernel_initializer=he_normal_fan_out(),
    )
    return normalize_batch(x, cell)


def _add_basic_block(x: Any, cell: Cell, num_channels: int, stride: int) -> Any:
    shortcut = x
    if stride != 1 or x.shape[-1] != num_channels:
        shortcut = convolve_and_normalize(x, cell, num_channels, 1, stride)
    x = layers.ReLU()(convolve_and_normalize(x, cell, num_channels, 3, stride))
    x = convolve_and_normalize(x, cell, num_channels, 3)
    return layers.ReLU()(layers.Add()([x, shortcut]))


def build_resnet18_cifar(cell: Cell) -> keras.Model:
    """Return ResNet18 with a 3x3 stem of stride 1 and no max-pool: 11,173,962 trainable parameters at 10 classes."""
    inputs = make_image_input(cell.input_size)
    x = layers.ReLU()(convolve_and_normalize(inputs, cell, 64, 3))
    return keras.Model(inputs, classify(x, cell))


# (channels of the 3x3 convolutions, blocks, stride of the first block) of the four stages.
BOTTLENECK_STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
EXPANSION = 4


def build_resnet50(cell: Cell) -> keras.Model:
    """Return ResNet50, channels last: 25,557,032 trainable parameters at 1000 classes.

    v1.5: the stride is that of the 3x3 convolution, as torchvision has it (models/resnet.py). Padding,
    norms and initial weights as of ResNet18.
    """
    inputs = make_image_input(cell.input_size)
    x = add_stem(inputs, cell)
    for width, num_blocks, stride in BOTTLENECK_STAGES:
        for number in range(num_blocks):
            x = _add_bottleneck(x, cell, width, stride if number == 0 else 1)
    return keras.Model(inputs, add_head(x, cell))


def _add_bottleneck(x: Any, cell: Cell, width: int, stride: int) -> Any:
    shortcut = x
    if stride != 1 or x.shape[-1] != EXPANSION * width:
        shortcut = convolve_and_normalize(x, cell, EXPANSION * width, 1, stride)
    x = layers.ReLU()(convolve_and_normalize(x, cell, width, 1))
    x = layers.ReLU()(convolve_and_normalize(x, cell, width, 3, stride))
    x = convolve_and_normalize(x, cell, EXPANSION * width, 1)
    return layers.ReLU()(layers.Add()([x, shortcut]))


PATCH_SIZE = 16
VIT_WIDTH = 768
VIT_LAYERS = 12
VIT_HEADS = 12
VIT_MLP_WIDTH = 3072


class ClassToken(layers.Layer):
    """Puts a learned vector in front of the patches (batch, length, width)."""

    def build(self, input_shape: tuple[int, ...]) -> None:
        self.class_token = self.add_weight(shape=(1, 1, input_shape[-1]), initializer="zeros", name="class_token")

    def call(self, x: Any) -> Any:
        token = ops.broadcast_to(self.class_token, (ops.shape(x)[0], 1, x.shape[-1]))
        return ops.concatenate([token, x], axis=1)


class PositionEmbedding(layers.Layer):
    """Adds a learned vector to every position of (batch, length, width)."""

    def build(self, input_shape: tuple[int, ...]) -> None:
        shape = (1, *input_shape[1:])
        self.pos_embedding = self.add_weight(shape=shape, initializer=RandomNormal(stddev=0.02), name="pos_embedding")

    def call(self, x: Any) -> Any:
        return x + self.pos_embedding


def build_vit_b_16(cell: Cell) -> keras.Model:
    """Return ViT-B/16 for images of `input_size`, channels last: 86,567,656 parameters at 224 px and 1000 classes.

    As in torchvision (models/vision_transformer.py): norms before attention and MLP, epsilon 1e-6, biases everywhere,
    the exact GELU, no dropout, the class token's last state into the head, which starts at zero.
    """
    inputs = make_image_input(cell.input_size)
    # torchvision truncates this normal distribution at +-2, 55 standard deviations: not at all.
    initializer = RandomNormal(stddev=math.sqrt(1 / (3 * PATCH_SIZE**2)))
    patches = convolve(inputs, VIT_WIDTH, PATCH_SIZE, padding=0, stride=PATCH_SIZE, kernel_initializer=initializer)
    x = layers.Reshape((patches.shape[1] * patches.shape[2], VIT_WIDTH))(patches)
    x = PositionEmbedding()(ClassToken()(x))
    for _ in range(VIT_LAYERS):
        x = layers.Add()([x, _attend_vit(_normalize_vit(x))])
        x = layers.Add()([x, _apply_mlp(_normalize_vit(x))])
    class_state = _normalize_vit(x)[:, 0]
    return keras.Model(inputs, layers.Dense(cell.num_classes, kernel_initializer="zeros")(class_state))


def _attend_vit(x: Any) -> Any:
    length, head_width = x.shape[1], VIT_WIDTH // VIT_HEADS
    query_key_value = layers.Dense(3 * VIT_WIDTH, kernel_initializer=GlorotUniform())(x)
    heads = layers.Reshape((length, 3, VIT_HEADS, head_width))(query_key_value)
    query, key, value = (heads[:, :, index] for index in range(3))
    attended = ops.dot_product_attention(query, key, value, scale=head_width**-0.5)
    return layers.Dense(VIT_WIDTH, kernel_initializer=torch_uniform(VIT_WIDTH))(
        layers.Reshape((length, VIT_WIDTH))(attended)
    )


def _apply_mlp(x: Any) -> Any:
    return _connect_vit(_connect_vit(x, VIT_MLP_WIDTH, activation="gelu"), VIT_WIDTH)  # exact, not approximated by tanh


def _connect_vit(x: Any, num_outputs: int, **options: Any) -> Any:
    weights, bias = GlorotUniform(), RandomNormal(stddev=1e-6)
    return layers.Dense(num_outputs, kernel_initializer=weights, bias_initializer=bias, **options)(x)


def _normalize_vit(x: Any) -> Any:
    return layers.LayerNormalization(epsilon=1e-6)(x)


TEXT_WIDTH = 256
TEXT_LAYERS = 4
TEXT_HEADS = 4
TEXT_MLP_WIDTH = 1024


class Positions(layers.Layer):
    """Adds a learned vector to every position of (batch, length, width)."""

    def build(self, input_shape: tuple[int, ...]) -> None:
        self.positions = self.add_weight(shape=input_shape[1:], initializer=normal_002(), name="positions")

    def call(self, x: Any) -> Any:
        return x + self.positions


def build_text_classifier(cell: Cell) -> keras.Model:
    """Return the classifier for texts of `input_size` tokens: 8,312,834 parameters at 128 tokens and 2 classes."""
    tokens = keras.Input((cell.input_size,), dtype="int32")
    x = layers.Embedding(VOCABULARY_SIZE, TEXT_WIDTH, embeddings_initializer=normal_002())(tokens)
    x = Positions()(x)
    for _ in range(TEXT_LAYERS):
        x = layers.Add()([x, _attend_text(_normalize_text(x))])
        x = layers.Add()([x, _feed_forward(_normalize_text(x))])
    x = layers.GlobalAveragePooling1D()(_normalize_text(x))
    return keras.Model(tokens, _connect_text(x, cell.num_classes))


def _attend_text(x: Any) -> Any:
    length, head_width = x.shape[1], TEXT_WIDTH // TEXT_HEADS
    heads = layers.Reshape((length, 3, TEXT_HEADS, head_width))(_connect_text(x, 3 * TEXT_WIDTH))
    query, key, value = (heads[:, :, index] for index in range(3))
    attended = ops.dot_product_attention(query, key, value, scale=head_width**-0.5)
    return _connect_text(layers.Reshape((length, TEXT_WIDTH))(attended), TEXT_WIDTH)


def _feed_forward(x: Any) -> Any:
    return _connect_text(
        _connect_text(x, TEXT_MLP_WIDTH, activation="gelu"), TEXT_WIDTH
    )  # exact, not approximated by tanh


def _normalize_text(x: Any) -> Any:
    return layers.LayerNormalization(epsilon=1e-5)(x)  # PyTorch's; Keras's own is 1e-3


def _connect_text(x: Any, num_outputs: int | None, **options: Any) -> Any:
    return layers.Dense(num_outputs, kernel_initializer=normal_002(), **options)(x)


def normal_002() -> Any:
    return RandomNormal(stddev=0.02)


GENERATOR_BLOCKS = 9
GAN_WIDTH = 64
"""Channels of the first layer of every network; the others have multiples of it."""


def build_cyclegan(cell: Cell) -> dict[str, keras.Model]:
    """Return generator_ab, generator_ba (11,378,179 parameters each) and discriminator_a, discriminator_b (2,764,737).

    Generators map images (batch, size, size, 3) to images in [-1, 1], size a multiple of 4. Discriminators map images
    to scores (batch, n, n, 1) of overlapping patches of 70 px; n = 30 at 256 px.
    """
    return {
        "generator_ab": build_generator(cell.input_size),
        "generator_ba": build_generator(cell.input_size),
        "discriminator_a": build_discriminator(cell.input_size),
        "discriminator_b": build_discriminator(cell.input_size),
    }


def build_generator(size: int) -> keras.Model:
    """Return c7s1-64, d128, d256, nine blocks R256, u128, u64, c7s1-3, as the paper's appendix writes it."""
    inputs = make_image_input(size)
    x = _normalize_and_rectify(_convolve_gan(_reflect(inputs, 3), GAN_WIDTH, 7))
    for num_channels in (2 * GAN_WIDTH, 4 * GAN_WIDTH):
        x = _normalize_and_rectify(_convolve_gan(x, num_channels, 3, stride=2, padding=1))
    for _ in range(GENERATOR_BLOCKS):
        x = _add_residual_block(x)
    for num_channels in (2 * GAN_WIDTH, GAN_WIDTH):
        x = _normalize_and_rectify(_upsample(x, num_channels))
    x = _convolve_gan(_reflect(x, 3), 3, 7)
    return keras.Model(inputs, layers.Activation("tanh")(x))


def build_discriminator(size: int) -> keras.Model:
    """Return C64 (without norm), C128, C256, C512 and a convolution to one score, kernels of 4: PatchGAN of 70 px."""
    inputs = make_image_input(size)
    x = layers.LeakyReLU(negative_slope=0.2)(_convolve_gan(inputs, GAN_WIDTH, 4, stride=2, padding=1))
    for num_channels, stride in ((2 * GAN_WIDTH, 2), (4 * GAN_WIDTH, 2), (8 * GAN_WIDTH, 1)):
        x = _normalize_instance(_convolve_gan(x, num_channels, 4, stride=stride, padding=1))
        x = layers.LeakyReLU(negative_slope=0.2)(x)
    return keras.Model(inputs, _convolve_gan(x, 1, 4, padding=1))


def _add_residual_block(x: Any) -> Any:
    branch = _normalize_and_rectify(_convolve_gan(_reflect(x, 1), x.shape[-1], 3))
    branch = _normalize_instance(_convolve_gan(_reflect(branch, 1), x.shape[-1], 3))
    return layers.Add()([x, branch])


def _convolve_gan(x: Any, num_channels: int, kernel_size: int, *, stride: int = 1, padding: int = 0) -> Any:
    initializer = normal_002()
    return convolve(x, num_channels, kernel_size, padding=padding, stride=stride, kernel_initializer=initializer)


def _upsample(x: Any, num_channels: int) -> Any:
    """Return PyTorch's ConvTranspose2d(kernel_size=3, stride=2, padding=1, output_padding=1): twice the side.

    Output o takes input i by weight k where o = 2 i + k - 1. Unpadded ("valid"), Keras's takes o = 2 i + k and yields
    one row and column more: the first ones are cut off. Its "same" would cut off the last ones.
    """
    initializer = normal_002()
    x = layers.Conv2DTranspose(num_channels, 3, strides=2, padding="valid", kernel_initializer=initializer)(x)
    return layers.Cropping2D(((1, 0), (1, 0)))(x)


def _reflect(x: Any, padding: int) -> Any:
    return ops.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)), mode="reflect")


def _normalize_instance(x: Any) -> Any:
    """Return instance norm: a group per channel, PyTorch's epsilon, no affine parameters."""
    return layers.GroupNormalization(groups=-1, epsilon=1e-5, center=False, scale=False)(x)


def _normalize_and_rectify(x: Any) -> Any:
    return layers.ReLU()(_normalize_instance(x))


class MatrixProduct(keras.Model):
    """The product of two stacks of square matrices, in the dtype that the policy computes in."""

    def call(self, left: Any, right: Any) -> Any:
        return keras.ops.matmul(left, right)


def build_matmul(cell: Cell) -> keras.Model:
    return MatrixProduct()
