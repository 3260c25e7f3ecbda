"""Yields endless batches of real data for PyTorch through torch.utils.data and torchvision."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, Sampler
from torchvision.io import decode_image
from torchvision.transforms import v2

from bench.data import preprocessing
from bench.data.feed import BatchFeed, end_with_parent
from bench.data.files import Cifar10Records, find_cifar10_files, find_image_files, report_undecodable
from bench.errors import UserError
from bench.registry import MODELS
from bench.schema import Cell

Batch = tuple[Tensor, ...]


def open_pipeline(cell: Cell, num_threads: int) -> BatchFeed:
    """Check the files of `cell.data_dir` and return endless batches, prepared by `num_threads` worker processes.

    CIFAR-10: images (batch, 3, size, size) float32 and labels (batch,) int64. Image folders: images of both domains.
    In pinned memory for a GPU.
    """
    dataset = Cifar10Images(cell) if MODELS[cell.model].data == "cifar10" else ImagePairs(cell)
    seeds = torch.Generator().manual_seed(cell.seed)
    sampler = EndlessSampler(dataset.sizes, seeds if cell.phase == "train" else None)
    loader = DataLoader(
        dataset,
        batch_sampler=BatchSampler(sampler, cell.batch_size, drop_last=True),
        num_workers=num_threads,
        pin_memory=cell.device == "gpu",
        worker_init_fn=end_with_parent,
        prefetch_factor=preprocessing.NUM_BATCHES_PER_WORKER,
        persistent_workers=True,
        generator=torch.Generator().manual_seed(cell.seed),
    )
    # Starts the workers now: they belong to building, not to the first step. A batch that is handed out is asked for
    # anew: there are never more under way or ready, pinned ones included.
    return BatchFeed(_shorten_errors(iter(loader)), preprocessing.NUM_BATCHES_PER_WORKER * num_threads)


class EndlessSampler(Sampler[tuple[int, ...]]):
    """Indices into one or more sets of images, epoch after epoch; each set in its own order, shuffled anew each epoch.

    `generator` None: in the order of the files.
    """

    def __init__(self, sizes: tuple[int, ...], generator: torch.Generator | None) -> None:
        self._sizes = sizes
        self._generator = generator

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return zip(*map(self._draw_indices, self._sizes), strict=True)

    def _draw_indices(self, size: int) -> Iterator[int]:
        while True:
            if self._generator is None:
                yield from range(size)
            else:
                yield from torch.randperm(size, generator=self._generator).tolist()


class Cifar10Images(Dataset[Any]):
    """CIFAR-10's images, preprocessed, with their labels."""

    def __init__(self, cell: Cell) -> None:
        self._records = Cifar10Records(find_cifar10_files(cell))
        self.sizes = (len(self._records),)
        side, padding = preprocessing.CIFAR_SIDE, preprocessing.CIFAR_CROP_PADDING
        steps = [v2.RandomCrop(side, padding=padding), v2.RandomHorizontalFlip()] if cell.phase == "train" else []
        if cell.input_size != side:
            steps.append(v2.Resize((cell.input_size, cell.input_size), antialias=True))
        self._transform = compose(steps, preprocessing.CIFAR_MEAN, preprocessing.CIFAR_STD)

    def __getitem__(self, indices: tuple[int]) -> tuple[Tensor, int]:
        image, label = self._records[indices[0]]
        return self._transform(torch.from_numpy(image)), label


class ImagePairs(Dataset[Any]):
    """Images of two domains, decoded and preprocessed; a pair is any two of them."""

    def __init__(self, cell: Cell) -> None:
        self._domains = find_image_files(cell)
        self.sizes = tuple(map(len, self._domains))
        size = (cell.input_size, cell.input_size)
        load_size = (preprocessing.load_size(cell), preprocessing.load_size(cell))
        steps = [v2.Resize(size, antialias=True)]
        if cell.phase == "train":
            steps = [v2.Resize(load_size, antialias=True), v2.RandomCrop(size), v2.RandomHorizontalFlip()]
        self._transform = compose(steps, [preprocessing.TRANSLATION_MEAN] * 3, [preprocessing.TRANSLATION_STD] * 3)

    def __getitem__(self, indices: tuple[int, int]) -> Batch:
        return tuple(self._transform(decode(domain[i])) for domain, i in zip(self._domains, indices, strict=True))


def compose(steps: list[Any], mean: Sequence[float], std: Sequence[float]) -> Any:
    return v2.Compose([*steps, v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, std)])


def decode(path: Path) -> Tensor:
    try:
        return decode_image(str(path), mode="RGB")
    except (RuntimeError, ValueError) as error:
        raise report_undecodable(path) from error


def _shorten_errors(batches: Iterator[Any]) -> Iterator[Batch]:
    try:
        yield from map(tuple, batches)
    except UserError as error:  # of a worker: DataLoader writes its traceback before the message
        raise UserError(str(error).strip().rpartition("UserError: ")[2]) from None
