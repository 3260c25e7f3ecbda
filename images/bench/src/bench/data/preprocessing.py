"""The constants of preprocessing, shared so that each framework's pipeline does the same work; see docs/data.md."""

from bench.schema import Cell

CIFAR_SIDE = 32
CIFAR_RECORD_BYTES = 1 + 3 * CIFAR_SIDE**2  # the label, then the planes of red, green and blue
CIFAR_NUM_CLASSES = 10
# Over all pixels of the 50,000 training images, red, green and blue, in [0, 1]; the commonly published
# (0.2023, 0.1994, 0.2010) is the mean of the images' deviations: github.com/kuangliu/pytorch-cifar/issues/19.
CIFAR_MEAN = (0.4914, 0.4822, 0.4465)
CIFAR_STD = (0.2470, 0.2435, 0.2616)
# Pixels of black on each side before the random crop: He et al., arXiv 1512.03385, section 4.2.
CIFAR_CROP_PADDING = 4

# CycleGAN's images are resized to 286 pixels and cropped to 256: github.com/junyanz/pytorch-CycleGAN-and-pix2pix.
LOAD_SIZE_RATIO = 286 / 256
# [0, 1] to [-1, 1], the range of the generator's tanh.
TRANSLATION_MEAN = 0.5
TRANSLATION_STD = 0.5

# Batches that each worker process, or thread of tf.data, holds ready; PyTorch's own default.
NUM_BATCHES_PER_WORKER = 2


def load_size(cell: Cell) -> int:
    """Return height and width in pixels that a training image is resized to before its random crop to `input_size`."""
    return round(cell.input_size * LOAD_SIZE_RATIO)
