"""Yields endless batches of real data for JAX through Grain.

JAX has no loader of its own; Grain is the one that its authors make. Grain decodes no images: Pillow does.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grain
import grain.experimental
import numpy as np
from absl import flags
from numpy.typing import NDArray
from PIL import Image

from bench.data import preprocessing
from bench.data.feed import BatchFeed, end_with_parent
from bench.data.files import Cifar10Records, find_cifar10_files, find_image_files, report_undecodable
from bench.registry import MODELS
from bench.schema import Cell

# Beside its queue a worker holds one batch that waits for room in it. In this process Grain has a thread for each
# worker, which holds one more, a queue for one, and one ahead of them (grain 0.2, process_prefetch.py, interleave.py;
# counted by tests/unit/bench/test_data.py).
EXTRA_BATCHES_PER_WORKER = 4

Pixels = NDArray[np.uint8]
Floats = NDArray[np.float32]


def open_pipeline(cell: Cell, num_threads: int) -> BatchFeed:
    """Check the files of `cell.data_dir` and return endless batches, prepared by `num_threads` worker processes.

    CIFAR-10: images (batch, size, size, 3) float32 and labels (batch,) int32, JAX's default integer. Image folders:
    images of both domains. NumPy arrays.
    """
    dataset = read_cifar10(cell) if MODELS[cell.model].data == "cifar10" else read_pairs(cell)
    flags.FLAGS.mark_as_parsed()  # Grain's switches, which this program has no command line for: their defaults
    # No threads inside a worker: there are as many workers as threads allowed.
    in_turn = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    workers = grain.MultiprocessingOptions(
        num_workers=num_threads, per_worker_buffer_size=preprocessing.NUM_BATCHES_PER_WORKER
    )
    batches = dataset.batch(cell.batch_size, drop_remainder=True).to_iter_dataset(in_turn)
    pipeline = iter(batches.mp_prefetch(workers, worker_init_fn=end_with_parent))
    return BatchFeed(pipeline, (preprocessing.NUM_BATCHES_PER_WORKER + EXTRA_BATCHES_PER_WORKER) * num_threads)


def read_cifar10(cell: Cell) -> Any:
    def prepare(record: tuple[Pixels, int], random: np.random.Generator) -> tuple[Floats, np.int32]:
        planes, label = record
        image = planes.transpose(1, 2, 0)
        if cell.phase == "train":
            image = crop_and_flip(pad(image, preprocessing.CIFAR_CROP_PADDING), preprocessing.CIFAR_SIDE, random)
        if cell.input_size != preprocessing.CIFAR_SIDE:
            image = resize(Image.fromarray(np.ascontiguousarray(image)), cell.input_size)
        return normalize(image, preprocessing.CIFAR_MEAN, preprocessing.CIFAR_STD), np.int32(label)

    return repeat_prepared(cell, Cifar10Records(find_cifar10_files(cell)), prepare, stream=0)


def read_pairs(cell: Cell) -> Any:
    """Return an endless dataset of pairs of preprocessed images, one of each domain, in orders of their own."""
    load_size = preprocessing.load_size(cell)

    def prepare(path: Path, random: np.random.Generator) -> Floats:
        if cell.phase == "train":
            image = crop_and_flip(resize(decode(path), load_size), cell.input_size, random)
        else:
            image = resize(decode(path), cell.input_size)
        return normalize(image, [preprocessing.TRANSLATION_MEAN] * 3, [preprocessing.TRANSLATION_STD] * 3)

    domains = [repeat_prepared(cell, paths, prepare, stream=i) for i, paths in enumerate(find_image_files(cell))]
    return grain.experimental.ZipMapDataset(domains)


def repeat_prepared(cell: Cell, source: Any, prepare: Callable[[Any, np.random.Generator], Any], *, stream: int) -> Any:
    """Return `source` without end, each element prepared; shuffled anew in each epoch for training.

    `stream` separates the random numbers of one dataset from those of another.
    """
    seed = (cell.seed + stream) % 2**32
    dataset = grain.MapDataset.source(source)
    if cell.phase == "train":
        dataset = dataset.shuffle(seed=seed)
    return dataset.random_map(prepare, seed=seed).repeat()


def decode(path: Path) -> Image.Image:
    try:
        with Image.open(path) as image:
            return image.convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:  # Pillow has no one class for damaged files
        raise report_undecodable(path) from error


def pad(image: Pixels, padding: int) -> Pixels:
    """Return the image with that many black pixels on each side; np.pad takes five times as long at 32 px."""
    height, width, channels = image.shape
    padded = np.zeros((height + 2 * padding, width + 2 * padding, channels), dtype=np.uint8)
    padded[padding:-padding, padding:-padding] = image
    return padded


def crop_and_flip(image: Pixels, side: int, random: np.random.Generator) -> Pixels:
    top, left = random.integers(0, image.shape[0] - side + 1), random.integers(0, image.shape[1] - side + 1)
    square = image[top : top + side, left : left + side]
    return square[:, ::-1] if random.random() < 0.5 else square


def resize(image: Image.Image, side: int) -> Pixels:
    return np.asarray(image.resize((side, side), Image.Resampling.BILINEAR))


def normalize(image: Pixels, mean: Sequence[float], std: Sequence[float]) -> Floats:
    values = image.astype(np.float32)
    values /= 255
    values -= np.asarray(mean, dtype=np.float32)
    values /= np.asarray(std, dtype=np.float32)
    return values
