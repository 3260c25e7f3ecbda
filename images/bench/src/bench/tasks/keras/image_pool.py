"""Keeps CycleGAN's pool of earlier fakes in Keras and exchanges new fakes for old ones."""

import keras
from keras import ops

from bench.tasks.keras.interface import Tensor

POOL_SIZE = 50


class ImagePool:
    """The last fakes (Shrivastava et al., arXiv 1612.07828): filled first, then each new one is swapped half the time.

    Everything, the drawing of lots too, stays on the device and is kept in variables, so that a whole step can be
    traced. Of several replicas in TensorFlow each has its own pool (`on_read`), as each process has in PyTorch.
    """

    def __init__(self, image_size: int, *, seed: int) -> None:
        shape = (POOL_SIZE, image_size, image_size, 3)
        self.images = _make_variable(shape, keras.config.dtype_policy().variable_dtype)
        self.num_images = _make_variable((), "int")  # int64 in TensorFlow, which keeps int32 of a GPU on the host
        self._seeds = keras.random.SeedGenerator(seed)
        self.state = (self.images, self.num_images, self._seeds.state)

    def exchange(self, images: Tensor) -> Tensor:
        """Return a batch (batch, size, size, 3): each image itself, or one from the pool in its place.

        They have the type of the networks' weights. No gradient goes through it.
        """
        new_images = ops.cast(ops.stop_gradient(images), self.images.dtype)
        batch_size = new_images.shape[0]
        lots = keras.random.randint((batch_size,), 0, POOL_SIZE, dtype=self.num_images.dtype, seed=self._seeds)
        swaps = keras.random.uniform((batch_size,), dtype="float32", seed=self._seeds) < 0.5
        pool, num_images = self.images.value, self.num_images.value
        chosen = []
        for i in range(batch_size):
            is_full = num_images >= POOL_SIZE
            slot = ops.where(is_full, lots[i], num_images)
            old, new = ops.take(pool, slot, axis=0), new_images[i]
            is_swapped = ops.logical_and(is_full, swaps[i])
            enters = ops.logical_or(ops.logical_not(is_full), swaps[i])
            pool = ops.scatter_update(pool, ops.reshape(slot, (1, 1)), ops.where(enters, new, old)[None])
            num_images = ops.minimum(num_images + 1, POOL_SIZE)
            chosen.append(ops.where(is_swapped, old, new))
        self.images.assign(pool)
        self.num_images.assign(num_images)
        return ops.stack(chosen)


def _make_variable(shape: tuple[int, ...], dtype: str) -> keras.Variable:
    return keras.Variable(
        "zeros", shape, dtype, trainable=False, synchronization="on_read", aggregation="only_first_replica"
    )
