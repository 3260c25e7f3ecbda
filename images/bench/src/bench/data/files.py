"""Finds the files of a `data_dir` before the first step. Imports no framework.

Every file is read once here, so a pipeline starts with whatever the page cache can hold of them.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.data.preprocessing import CIFAR_NUM_CLASSES, CIFAR_RECORD_BYTES, CIFAR_SIDE
from bench.errors import UserError
from bench.schema import Cell, Phase

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png")

CIFAR_FILES: dict[Phase, tuple[str, ...]] = {
    "train": tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
    "infer": ("test_batch.bin",),
}
CIFAR_ADVICE = "give the folder cifar-10-batches-bin of cifar-10-binary.tar.gz, unpacked"
IMAGE_FOLDERS: dict[Phase, tuple[str, str]] = {"train": ("trainA", "trainB"), "infer": ("testA", "testB")}
IMAGE_ADVICE = "give a folder with trainA, trainB, testA and testB, as horse2zebra unpacked has them"


def find_cifar10_files(cell: Cell) -> tuple[Path, ...]:
    """Return CIFAR-10's binary files for the cell's phase: five for training, one for inference, each whole."""
    if cell.num_classes is None or cell.num_classes < CIFAR_NUM_CLASSES:
        raise UserError(
            f"num_classes: CIFAR-10 in {cell.data_dir} has {CIFAR_NUM_CLASSES} classes, the cell {cell.num_classes}; "
            f"give at least {CIFAR_NUM_CLASSES}"
        )
    folder = _find_folder(cell, CIFAR_ADVICE)
    paths = tuple(folder / name for name in CIFAR_FILES[cell.phase])
    num_images = sum(_check_cifar10_file(path) for path in paths)
    _check_number(cell, num_images, f"{folder} ({', '.join(CIFAR_FILES[cell.phase])})")
    return paths


def find_image_files(cell: Cell) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the JPEG and PNG files of both domains, sorted by name. Damage is met when an image is decoded."""
    folder = _find_folder(cell, IMAGE_ADVICE)
    domain_a, domain_b = (_find_images(cell, folder / name) for name in IMAGE_FOLDERS[cell.phase])
    return domain_a, domain_b


def report_undecodable(path: Path) -> UserError:
    return UserError(f"data_dir: {path} cannot be decoded as a JPEG or PNG image; fix or remove it")


def _find_folder(cell: Cell, advice: str) -> Path:
    assert cell.data_dir is not None
    folder = Path(cell.data_dir)
    if not os.path.isdir(folder):  # unlike Path.is_dir, False as well where the way to it is barred
        raise UserError(f"data_dir: there is no folder {folder}; {advice}, or leave data_dir out for synthetic data")
    return folder


def _check_cifar10_file(path: Path) -> int:
    if not path.is_file():
        raise UserError(f"data_dir: {path} is missing; {CIFAR_ADVICE}")
    with _refuse_unreadable(path):
        num_bytes = len(path.read_bytes())
    num_images, rest = divmod(num_bytes, CIFAR_RECORD_BYTES)
    if rest or not num_images:
        raise UserError(
            f"data_dir: {path} has {num_bytes} bytes, expected whole records of {CIFAR_RECORD_BYTES} bytes "
            f"(label and 32 x 32 pixels): is it cut off, or CIFAR-100? {CIFAR_ADVICE}"
        )
    return num_images


def _find_images(cell: Cell, folder: Path) -> tuple[Path, ...]:
    if not folder.is_dir():
        raise UserError(f"data_dir: there is no folder {folder}; {IMAGE_ADVICE}")
    with _refuse_unreadable(folder):
        paths = tuple(sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES))
    for path in paths:
        with _refuse_unreadable(path):
            path.read_bytes()
    _check_number(cell, len(paths), str(folder))
    return paths


def _check_number(cell: Cell, num_images: int, place: str) -> None:
    if num_images < cell.batch_size:
        raise UserError(
            f"data_dir: {place} holds {num_images} images, a batch takes {cell.batch_size}; add images or lower "
            "batch_size"
        )


@contextmanager
def _refuse_unreadable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"data_dir: {path} cannot be read ({reason}); fix its permissions or the disk") from error


class Cifar10Records:
    """The images of several files, one file after the other.

    Read from the file at each access, so that worker processes get paths and share the page cache.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._ends = np.cumsum([path.stat().st_size // CIFAR_RECORD_BYTES for path in paths])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, index: int) -> tuple[NDArray[np.uint8], int]:
        file = int(np.searchsorted(self._ends, index, side="right"))
        row = index - (int(self._ends[file - 1]) if file else 0)
        record = np.fromfile(
            self._paths[file], dtype=np.uint8, count=CIFAR_RECORD_BYTES, offset=row * CIFAR_RECORD_BYTES
        )
        return record[1:].reshape(3, CIFAR_SIDE, CIFAR_SIDE), int(record[0])
