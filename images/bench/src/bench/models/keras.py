"""The models in Keras 3, layer by layer the same as in bench.models.torch."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import layers, ops
from keras.initializers import GlorotUniform, RandomNormal, RandomUniform, VarianceScaling

from bench.models.sizes import (
    CONV6_STAGES,
    DENSE_SIDE,
    GAN_WIDTH,
    GENERATOR_BLOCKS,
    PATCH_SIZE,
    RESNET18_BLOCKS,
    RESNET50_BLOCKS,
    RMS_EPSILON,
    TEXT_ENCODER,
    VGG16_STAGES,
    VIT_ENCODER,
    Encoder,
    ResidualBlock,
    make_rotation,
)
from bench.registry import DECODERS, EIGHT_BITS, Decoder
from bench.schema import Cell, Precision
from bench.tasks.inputs import VOCABULARY_SIZE

HALF_TYPES = ("float16", "bfloat16")


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


def normal_002() -> Any:
    return RandomNormal(stddev=0.02)


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


def add_stages(x: Any, stages: Sequence[tuple[int, int]], make_initializer: Callable[[], Any]) -> Any:
    for num_channels, num_convolutions in stages:
        for _ in range(num_convolutions):
            # At stride 1 "same" is PyTorch's padding of 1.
            x = layers.Conv2D(
                num_channels, 3, padding="same", activation="relu", kernel_initializer=make_initializer()
            )(x)
        x = layers.MaxPooling2D(2)(x)
    return x


def build_conv6(cell: Cell) -> keras.Model:
    """Return the Conv-6 of Frankle and Carbin, channels last: 2,262,602 parameters at 32 px and 10 classes.

    The flattened features are ordered height, width, channel, PyTorch's channel, height, width: weights copied across
    must be permuted in the first dense layer.
    """
    inputs = make_image_input(cell.input_size)
    x = layers.Flatten()(add_stages(inputs, CONV6_STAGES, glorot_normal))
    for _ in range(2):
        x = layers.Dense(256, activation="relu", kernel_initializer=glorot_normal())(x)
    return keras.Model(inputs, layers.Dense(cell.num_classes, kernel_initializer=glorot_normal())(x))


DROPOUT_RATE = 0.5


def build_vgg16(cell: Cell) -> keras.Model:
    """Return VGG16, channels last: 138,357,544 parameters at 1000 classes and any size.

    Weights are drawn as torchvision draws them (torchvision/models/vgg.py): convolutions He-normal over the fan out,
    dense layers N(0, 0.01), zero biases. Weights copied across must be permuted in the first dense layer.
    """
    inputs = make_image_input(cell.input_size)
    x = add_stages(inputs, VGG16_STAGES, he_normal_fan_out)
    if x.shape[1] != DENSE_SIDE:
        x = average_to(x, DENSE_SIDE)
    x = layers.Flatten()(x)
    for _ in range(2):
        x = layers.Dropout(DROPOUT_RATE)(_connect_vgg(x, 4096, activation="relu"))
    return keras.Model(inputs, _connect_vgg(x, cell.num_classes))


def average_to(x: Any, side: int) -> Any:
    """Return maps averaged to side x side, as PyTorch divides them; Keras's layer gives NaN in JAX from 3 to 7."""
    parts = [slice(i * x.shape[1] // side, -(-(i + 1) * x.shape[1] // side)) for i in range(side)]
    x = ops.concatenate([ops.mean(x[:, part], axis=1, keepdims=True) for part in parts], axis=1)
    return ops.concatenate([ops.mean(x[:, :, part], axis=2, keepdims=True) for part in parts], axis=2)


def _connect_vgg(x: Any, num_outputs: int | None, **options: Any) -> Any:
    return layers.Dense(num_outputs, kernel_initializer=RandomNormal(stddev=0.01), **options)(x)


def build_resnet18(cell: Cell) -> keras.Model:
    """Return ResNet18 with the ImageNet stem, channels last: 11,689,512 trainable parameters at 1000 classes.

    As in torchvision: zero padding on both sides (Keras's "same" pads one side only at stride 2), batch norm with
    epsilon 1e-5 and momentum 0.9 (PyTorch's 0.1), convolutions without bias, He initialisation over the fan out, the
    dense layer drawn as torch.nn.Linear draws it. One difference remains: the running variance is that of n values in
    Keras, PyTorch's that of n - 1.
    """
    inputs = make_image_input(cell.input_size)
    return keras.Model(inputs, add_blocks(add_stem(inputs, cell), cell, RESNET18_BLOCKS))


def build_resnet18_cifar(cell: Cell) -> keras.Model:
    """Return ResNet18 with a 3x3 stem of stride 1 and no max-pool: 11,173,962 trainable parameters at 10 classes."""
    inputs = make_image_input(cell.input_size)
    x = layers.ReLU()(convolve_and_normalize(inputs, cell, 64, 3))
    return keras.Model(inputs, add_blocks(x, cell, RESNET18_BLOCKS))


def build_resnet50(cell: Cell) -> keras.Model:
    """Return ResNet50 v1.5, channels last: 25,557,032 trainable parameters at 1000 classes. Else as ResNet18."""
    inputs = make_image_input(cell.input_size)
    return keras.Model(inputs, add_blocks(add_stem(inputs, cell), cell, RESNET50_BLOCKS))


def add_stem(images: Any, cell: Cell) -> Any:
    x = layers.ReLU()(convolve_and_normalize(images, cell, 64, 7, stride=2))
    # Padding with zeros equals PyTorch's padding with minus infinity, since no value after a ReLU is below zero.
    return layers.MaxPooling2D(3, strides=2)(layers.ZeroPadding2D(1)(x))


def add_blocks(x: Any, cell: Cell, blocks: Sequence[ResidualBlock]) -> Any:
    """Return the logits that residual blocks, the mean over all positions and a dense layer make of x."""
    for *first, last in blocks:
        shortcut = x
        stride = max(stride for _, _, stride in (*first, last))
        if stride != 1 or x.shape[-1] != last[0]:
            shortcut = convolve_and_normalize(x, cell, last[0], 1, stride)
        for convolution in first:
            x = layers.ReLU()(convolve_and_normalize(x, cell, *convolution))
        x = layers.ReLU()(layers.Add()([convolve_and_normalize(x, cell, *last), shortcut]))
    x = layers.GlobalAveragePooling2D()(x)
    weights, bias = (torch_uniform(x.shape[-1]) for _ in range(2))
    return layers.Dense(cell.num_classes, kernel_initializer=weights, bias_initializer=bias)(x)


def convolve_and_normalize(x: Any, cell: Cell, num_channels: int, kernel_size: int, stride: int = 1) -> Any:
    """Return x convolved and, with PyTorch's momentum and epsilon, normalised by Keras or (`fused-norm`) TensorFlow."""
    x = convolve(
        x,
        num_channels,
        kernel_size,
        padding=kernel_size // 2,
        stride=stride,
        use_bias=False,
        kernel_initializer=he_normal_fan_out(),
    )
    if cell.mode == "fused-norm":
        from bench.models.fused_norm import FusedBatchNormalization  # only where TensorFlow is Keras's backend

        return FusedBatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


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
        self.pos_embedding = self.add_weight(
            shape=(1, *input_shape[1:]), initializer=normal_002(), name="pos_embedding"
        )

    def call(self, x: Any) -> Any:
        return x + self.pos_embedding


def encode(x: Any, encoder: Encoder, draw: Callable[[str], dict[str, Any]], *, epsilon: float) -> Any:
    """Return what a Transformer makes of x (batch, length, width); `epsilon`: of its norms.

    `draw(part)`: initialisers of a new dense layer, to queries, keys and values ("heads"), behind the attention
    ("projection") or of the MLP ("mlp").
    """
    length, width = x.shape[1:]
    head_width = width // encoder.num_heads

    def normalize(x: Any) -> Any:
        return layers.LayerNormalization(epsilon=epsilon)(x)

    def connect(x: Any, part: str, num_outputs: int, activation: str | None = None) -> Any:
        return layers.Dense(num_outputs, activation=activation, **draw(part))(x)

    for _ in range(encoder.num_layers):
        heads = layers.Reshape((length, 3, encoder.num_heads, head_width))(connect(normalize(x), "heads", 3 * width))
        query, key, value = (heads[:, :, index] for index in range(3))
        attended = ops.dot_product_attention(query, key, value, scale=head_width**-0.5)
        x = layers.Add()([x, connect(layers.Reshape((length, width))(attended), "projection", width)])
        hidden = connect(normalize(x), "mlp", encoder.mlp_width, "gelu")  # exact, not approximated by tanh
        x = layers.Add()([x, connect(hidden, "mlp", width)])
    return normalize(x)


def build_vit_b_16(cell: Cell) -> keras.Model:
    """Return ViT-B/16 for images of `input_size`, channels last: 86,567,656 parameters at 224 px and 1000 classes.

    As in torchvision (models/vision_transformer.py): norms before attention and MLP, epsilon 1e-6, biases everywhere,
    the exact GELU, no dropout, the class token's last state into the head, which starts at zero.
    """
    inputs = make_image_input(cell.input_size)
    # torchvision truncates this normal distribution at +-2, 55 standard deviations: not at all.
    initializer = RandomNormal(stddev=math.sqrt(1 / (3 * PATCH_SIZE**2)))
    width = VIT_ENCODER.width
    patches = convolve(inputs, width, PATCH_SIZE, padding=0, stride=PATCH_SIZE, kernel_initializer=initializer)
    x = layers.Reshape((patches.shape[1] * patches.shape[2], width))(patches)
    x = encode(PositionEmbedding()(ClassToken()(x)), VIT_ENCODER, _draw_vit, epsilon=1e-6)
    return keras.Model(inputs, layers.Dense(cell.num_classes, kernel_initializer="zeros")(x[:, 0]))


def _draw_vit(part: str) -> dict[str, Any]:
    match part:
        case "projection":
            return {"kernel_initializer": torch_uniform(VIT_ENCODER.width)}
        case "mlp":
            return {"kernel_initializer": GlorotUniform(), "bias_initializer": RandomNormal(stddev=1e-6)}
        case _:
            return {"kernel_initializer": GlorotUniform()}


def build_text_classifier(cell: Cell) -> keras.Model:
    """Return the classifier for texts of `input_size` tokens: 8,312,834 parameters at 128 tokens and 2 classes."""

    def draw(_: str) -> dict[str, Any]:
        return {"kernel_initializer": normal_002()}

    tokens = keras.Input((cell.input_size,), dtype="int32")
    x = layers.Embedding(VOCABULARY_SIZE, TEXT_ENCODER.width, embeddings_initializer=normal_002())(tokens)
    x = encode(PositionEmbedding()(x), TEXT_ENCODER, draw, epsilon=1e-5)  # PyTorch's; Keras's own is 1e-3
    return keras.Model(tokens, layers.Dense(cell.num_classes, **draw("head"))(layers.GlobalAveragePooling1D()(x)))


def build_cyclegan(cell: Cell) -> dict[str, keras.Model]:
    """Return the networks of bench.models.torch.build_cyclegan, images and scores with their channels last."""
    return {
        "generator_ab": build_generator(cell.input_size),
        "generator_ba": build_generator(cell.input_size),
        "discriminator_a": build_discriminator(cell.input_size),
        "discriminator_b": build_discriminator(cell.input_size),
    }


def build_generator(size: int) -> keras.Model:
    """Return the generator; in the words of the paper's appendix c7s1-64, d128, d256, nine R256, u128, u64, c7s1-3."""
    inputs = make_image_input(size)
    x = _normalize_and_rectify(_convolve_gan(_reflect(inputs, 3), GAN_WIDTH, 7))
    for num_channels in (2 * GAN_WIDTH, 4 * GAN_WIDTH):
        x = _normalize_and_rectify(_convolve_gan(x, num_channels, 3, stride=2, padding=1))
    for _ in range(GENERATOR_BLOCKS):
        branch = _normalize_and_rectify(_convolve_gan(_reflect(x, 1), x.shape[-1], 3))
        branch = _normalize_instance(_convolve_gan(_reflect(branch, 1), x.shape[-1], 3))
        x = layers.Add()([x, branch])
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


def _convolve_gan(x: Any, num_channels: int, kernel_size: int, *, stride: int = 1, padding: int = 0) -> Any:
    return convolve(x, num_channels, kernel_size, padding=padding, stride=stride, kernel_initializer=normal_002())


def _upsample(x: Any, num_channels: int) -> Any:
    """Return PyTorch's ConvTranspose2d(kernel_size=3, stride=2, padding=1, output_padding=1): twice the side.

    Output o takes input i by weight k where o = 2 i + k - 1. Unpadded ("valid"), Keras's takes o = 2 i + k and yields
    one row and column more: the first ones are cut off. Its "same" would cut off the last ones.
    """
    x = layers.Conv2DTranspose(num_channels, 3, strides=2, padding="valid", kernel_initializer=normal_002())(x)
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


class LanguageModel(keras.Model):
    """Maps tokens (batch, number) to the logits (batch, vocabulary) of the token that follows the last of them."""

    def __init__(self, shape: Decoder, batch_size: int, capacity: int, precision: Precision = "fp32") -> None:
        super().__init__()
        self.embedding = layers.Embedding(shape.vocabulary_size, shape.width, normal_002())
        self.blocks = [DecoderLayer(shape, batch_size, capacity, precision) for _ in range(shape.num_layers)]
        self.norm = RmsNorm()
        is_shared = shape.is_tied and precision not in EIGHT_BITS
        self.head = None if is_shared else _connect(shape.vocabulary_size, precision)
        for layer in filter(None, (self.embedding, *self.blocks, self.norm, self.head)):
            layer.build((None, shape.width))
        self.rotation = self.add_weight(
            shape=(2, capacity, shape.head_width // 2),
            initializer=lambda _, dtype: ops.convert_to_tensor(make_rotation(shape, capacity), dtype),
            trainable=False,
        )
        self.built = True

    def call(self, tokens: Any, position: Any = 0) -> Any:
        """`position`: that of the first token, 0 where there are several; a tensor where a program takes any."""
        x = self.embedding(tokens)
        number, half_width = tokens.shape[1], self.rotation.shape[2]
        rotation = ops.expand_dims(ops.slice(self.rotation.value, (0, position, 0), (2, number, half_width)), 2)
        for block in self.blocks:
            x = block(x, rotation, position=position)
        x = self.norm(x[:, -1])
        return ops.matmul(x, ops.transpose(self.embedding.embeddings)) if self.head is None else self.head(x)


class DecoderLayer(layers.Layer):
    """Grouped-query attention over all positions so far, and SwiGLU, each behind a norm and added to its input."""

    def __init__(self, shape: Decoder, batch_size: int, capacity: int, precision: Precision) -> None:
        super().__init__()
        self.shape, self.cache_shape = shape, (batch_size, capacity, shape.num_kv_heads, shape.head_width)
        self.attention_norm, self.mlp_norm = (RmsNorm() for _ in range(2))
        widths = (shape.width + 2 * shape.kv_width, shape.width, 2 * shape.mlp_width, shape.width)
        connections = (_connect(width, precision) for width in widths)
        self.query_key_value, self.projection, self.gate_up, self.down = connections

    def build(self, _: Any) -> None:
        for layer in (self.attention_norm, self.mlp_norm, self.query_key_value, self.projection, self.gate_up):
            layer.build((None, self.shape.width))
        self.down.build((None, self.shape.mlp_width))
        self.keys, self.values = (
            self.add_weight(shape=self.cache_shape, initializer=RandomNormal(stddev=1.0), trainable=False)
            for _ in range(2)
        )

    def call(self, x: Any, rotation: Any, position: Any) -> Any:
        x = x + self.projection(self._attend(self.attention_norm(x), rotation, position))
        gate, up = ops.split(self.gate_up(self.mlp_norm(x)), 2, axis=-1)
        return x + self.down(ops.silu(gate) * up)

    def _attend(self, x: Any, rotation: Any, position: Any) -> Any:
        shape, number = self.shape, x.shape[1]
        heads = ops.reshape(self.query_key_value(x), (x.shape[0], number, -1, shape.head_width))
        parts = [shape.num_heads, shape.num_heads + shape.num_kv_heads]
        query, key, value = ops.split(heads, parts, axis=2)
        query, key = rotate(query, rotation), rotate(key, rotation)
        for cache, new in ((self.keys, key), (self.values, value)):
            cache.assign(ops.slice_update(cache.value, (0, position, 0, 0), new))
        if number > 1 and self.compute_dtype in HALF_TYPES:
            attended = ops.dot_product_attention(query, key, value, is_causal=True)
        else:
            end = position + number if isinstance(position, int) else self.cache_shape[1]
            attended = attend(query, self.keys[:, :end], self.values[:, :end], position)
        return ops.reshape(attended, (x.shape[0], number, shape.width))


def _connect(num_outputs: int, precision: Precision) -> layers.Layer:
    if precision in EIGHT_BITS:
        from bench.models.quantized_jax import EightBitDense  # JAX's

        return EightBitDense(num_outputs, precision, normal_002())
    return layers.Dense(num_outputs, use_bias=False, kernel_initializer=normal_002())


class RmsNorm(layers.Layer):
    """Divides by the root of the mean square, in float32 at least: Keras's own is never more exact than that on JAX."""

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.scale = self.add_weight(shape=input_shape[-1:], initializer="ones")

    def call(self, x: Any) -> Any:
        wide = widen(x)
        mean_square = ops.sum(ops.square(wide), axis=-1, keepdims=True) / x.shape[-1]
        scaled = wide * ops.rsqrt(mean_square + RMS_EPSILON)
        return ops.cast(scaled, x.dtype) * self.scale


def widen(x: Any) -> Any:
    """Return half precision in float32, others as they are: losses and squares are summed up in it, as PyTorch does."""
    return ops.cast(x, "float32") if keras.backend.standardize_dtype(x.dtype) in HALF_TYPES else x


def attend(query: Any, keys: Any, values: Any, position: Any) -> Any:
    """Return what queries (batch, number, heads, width) take of values (batch, positions, kv heads, width).

    `ops.dot_product_attention` does it in one kernel on a GPU, but never more exactly than in float32.
    """
    number, num_kv_heads, width = query.shape[1], keys.shape[2], query.shape[3]
    groups = ops.reshape(query, (query.shape[0], number, num_kv_heads, -1, width))
    scores = ops.einsum("bnkgw,bmkw->bkgnm", groups, keys) / math.sqrt(width)
    if number > 1:
        scores = ops.where(ops.tri(number, dtype="bool"), scores, float("-inf"))
    elif not isinstance(position, int):
        scores = ops.where(ops.arange(keys.shape[1]) <= position, scores, float("-inf"))
    shares = ops.cast(ops.softmax(widen(scores)), query.dtype)
    return ops.einsum("bkgnm,bmkw->bnkgw", shares, values)


def rotate(heads: Any, rotation: Any) -> Any:
    """Return heads (batch, number, heads, head width) turned by their positions, value i with value i + width / 2."""
    cosine, sine = rotation[0], rotation[1]
    left, right = ops.split(heads, 2, axis=-1)
    return ops.concatenate([left * cosine - right * sine, right * cosine + left * sine], axis=-1)


def build_llama(cell: Cell) -> LanguageModel:
    return LanguageModel(DECODERS[cell.model], cell.batch_size, cell.input_size, cell.precision)
