"""Yields endless batches of real data for TensorFlow through tf.data."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from bench.data import preprocessing
from bench.data.feed import BatchFeed
from bench.data.files import find_cifar10_files, find_image_files, report_undecodable
from bench.registry import MODELS
from bench.schema import Cell


def open_pipeline(cell: Cell, num_threads: int) -> BatchFeed:
    """Check the files of `cell.data_dir` and return endless batches, prepared by `num_threads` threads of tf.data.

    CIFAR-10: images (batch, size, size, 3) float32 and labels (batch,) int64. Image folders: images of both domains.
    Eager tensors on the CPU.
    """
    paths: tuple[Path, ...] = ()
    with tf.device("CPU:0"):
        if MODELS[cell.model].data == "cifar10":
            dataset = read_cifar10(cell, num_threads)
        else:
            domains = find_image_files(cell)
            paths = domains[0] + domains[1]
            images = (read_domain(cell, domain, num_threads, stream=stream) for stream, domain in enumerate(domains))
            dataset = tf.data.Dataset.zip(tuple(images))
        # Not AUTOTUNE: what is queued must be known, and as much as in the other frameworks.
        num_prefetched = preprocessing.NUM_BATCHES_PER_WORKER * num_threads
        dataset = dataset.batch(cell.batch_size, drop_remainder=True).prefetch(num_prefetched)
        options = tf.data.Options()
        options.threading.private_threadpool_size = num_threads
        batches = _name_damaged_image(iter(dataset.with_options(options)), paths)
    # Beside them: the batch that waits for room, and an image for each call under way, which the next ones are made of.
    return BatchFeed(batches, num_prefetched + 1 + math.ceil(num_threads / cell.batch_size))


def read_cifar10(cell: Cell, num_threads: int) -> Any:
    paths = find_cifar10_files(cell)
    num_images = sum(path.stat().st_size for path in paths) // preprocessing.CIFAR_RECORD_BYTES
    records = tf.data.FixedLengthRecordDataset([str(path) for path in paths], preprocessing.CIFAR_RECORD_BYTES)
    side, padding = preprocessing.CIFAR_SIDE, preprocessing.CIFAR_CROP_PADDING

    def parse(record: Any, seed: Any) -> tuple[Any, Any]:
        values = tf.io.decode_raw(record, tf.uint8)
        image = tf.transpose(tf.reshape(values[1:], (3, side, side)), (1, 2, 0))
        if cell.phase == "train":
            image = tf.image.resize_with_crop_or_pad(image, side + 2 * padding, side + 2 * padding)
            image = crop_and_flip(image, side, seed)
        image = normalize(resize(image, cell.input_size), preprocessing.CIFAR_MEAN, preprocessing.CIFAR_STD)
        return image, tf.cast(values[0], tf.int64)

    return repeat_with_seeds(cell, records, num_images, stream=0).map(parse, num_parallel_calls=num_threads)


def read_domain(cell: Cell, paths: tuple[Path, ...], num_threads: int, *, stream: int) -> Any:
    """Return an endless dataset of one domain's preprocessed images, `num_threads` prepared at a time.

    `stream` keeps the domains' randomness apart.
    """
    names = tf.data.Dataset.from_tensor_slices([str(path) for path in paths])

    def load(name: Any, seed: Any) -> Any:
        image = decode(name)
        if cell.phase == "train":
            image = crop_and_flip(resize(image, preprocessing.load_size(cell)), cell.input_size, seed)
        else:
            image = resize(image, cell.input_size)
        return normalize(image, preprocessing.TRANSLATION_MEAN, preprocessing.TRANSLATION_STD)

    return repeat_with_seeds(cell, names, len(paths), stream=stream).map(load, num_parallel_calls=num_threads)


def repeat_with_seeds(cell: Cell, dataset: Any, num_images: int, *, stream: int) -> Any:
    if cell.phase == "train":
        dataset = dataset.shuffle(num_images, seed=cell.seed + stream, reshuffle_each_iteration=True)
    first = tf.constant([cell.seed, stream << 48], dtype=tf.int64)
    seeds = tf.data.Dataset.counter().map(lambda count: first + tf.stack([tf.zeros_like(count), count]))
    return tf.data.Dataset.zip((dataset.repeat(), seeds))


def decode(name: Any) -> Any:
    return tf.io.decode_image(tf.io.read_file(name), channels=3, expand_animations=False)


def crop_and_flip(image: Any, side: int, seed: Any) -> Any:
    seeds = tf.random.split(seed, 2)
    image = tf.image.stateless_random_crop(image, (side, side, 3), seeds[0])
    return tf.image.stateless_random_flip_left_right(image, seeds[1])


def resize(image: Any, side: int) -> Any:
    if image.shape[:2] == (side, side):
        return image
    return tf.ensure_shape(tf.image.resize(image, (side, side), antialias=True), (side, side, 3))


def normalize(image: Any, mean: Any, std: Any) -> Any:
    return (tf.cast(image, tf.float32) / 255.0 - mean) / std


def _name_damaged_image(batches: Iterator[Any], paths: tuple[Path, ...]) -> Iterator[tuple[Any, ...]]:
    """Pass the batches on; where one cannot be made, find the damaged image, which tf.data does not name."""
    while True:
        try:
            yield next(batches)
        except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError):
            for path in paths:
                try:
                    decode(str(path))
                except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError) as error:
                    raise report_undecodable(path) from error
            raise
