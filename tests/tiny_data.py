"""Small data sets for tests: a folder in, CIFAR-10's binary files and PNG images with known content in it.

Every CIFAR-10 image shows what was done to it, as a pixel at (row, column): red is the image's number in its set,
green is 0 in the left half and 255 in the right one, blue is 8 x row. Its label is its number modulo 10.
Every PNG image of number n has red 10 x n; green and blue as above, with blue from 0 to 255 over the height.
"""

import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

NUM_TRAINING_IMAGES = 100
NUM_TEST_IMAGES = 24
NUM_IMAGES_A = 5
NUM_IMAGES_B = 7
SIDE = 32


def make_cifar10_image(number: int) -> NDArray[np.uint8]:
    """Return the image (32, 32, 3) of that number."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    return np.stack([np.full_like(rows, number), np.where(columns < 16, 0, 255), 8 * rows], axis=-1).astype(np.uint8)


def write_cifar10(folder: Path) -> Path:
    """Write five files of 20 training images and one of 24 test images into `folder` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    per_file = NUM_TRAINING_IMAGES // 5
    for file in range(5):
        _write_records(folder / f"data_batch_{file + 1}.bin", range(file * per_file, (file + 1) * per_file))
    _write_records(folder / "test_batch.bin", range(NUM_TEST_IMAGES))
    return folder


def write_image_folders(folder: Path) -> Path:
    """Write 5 images of domain A and 7 of domain B, 40 x 48 pixels, for training and test into `folder`; return it."""
    for phase in ("train", "test"):
        for domain, num_images in (("A", NUM_IMAGES_A), ("B", NUM_IMAGES_B)):
            place = folder / f"{phase}{domain}"
            place.mkdir(parents=True)
            for number in range(num_images):
                (place / f"{number:04}.png").write_bytes(encode_png(make_png_image(number)))
    return folder


def make_png_image(number: int) -> NDArray[np.uint8]:
    """Return the image (40, 48, 3) of that number."""
    rows, columns = np.mgrid[:40, :48]
    planes = [np.full_like(rows, 10 * number), np.where(columns < 24, 0, 255), np.round(rows * 255 / 39)]
    return np.stack(planes, axis=-1).astype(np.uint8)


def encode_png(image: NDArray[np.uint8]) -> bytes:
    """Return an RGB image (height, width, 3) as a PNG file: header, rows without filter, end."""
    height, width, _ = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in image)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def _write_records(path: Path, numbers: range) -> None:
    records = [bytes([number % 10]) + make_cifar10_image(number).transpose(2, 0, 1).tobytes() for number in numbers]
    path.write_bytes(b"".join(records))
