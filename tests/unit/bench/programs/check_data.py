"""Collect what a framework's input pipeline delivers and print it as a line of JSON.

Arguments: the framework; a folder that tests/tiny_data.py wrote, whose docstring says what the pixels of an image show;
`leave`: take a batch and end.
"""

import json
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from itertools import chain
from multiprocessing import active_children
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bench.errors import UserError
from bench.registry import FRAMEWORKS
from bench.schema import Framework
from factories import make_cell

CIFAR_MEAN = np.array([0.4914, 0.4822, 0.4465])
CIFAR_STD = np.array([0.2470, 0.2435, 0.2616])
COLOUR = (200, 100, 50)

Batches = Iterator[tuple[Any, ...]]


class Questions:
    """All questions to one framework; keeps every pipeline open: closing Grain's waits for its workers."""

    def __init__(self, framework: Framework, folder: Path) -> None:
        self._framework = framework
        self._folder = folder
        self._open_pipeline = import_module(f"bench.data.{framework}").open_pipeline
        self._opened: list[Batches] = []

    def open(self, folder: str, *, num_threads: int = 1, **fields: Any) -> Batches:
        """Return the pipeline of a cell whose `data_dir` is `folder`."""
        given = {
            "framework": self._framework,
            "mode": FRAMEWORKS[self._framework].modes[0],
            "num_classes": 10,
        }
        cell = make_cell(**(given | {"data_dir": str(self._folder / folder)} | fields))
        self._opened.append(self._open_pipeline(cell, num_threads))
        return self._opened[-1]

    def _to_nhwc(self, part: Any) -> NDArray[Any]:
        """Return a copy of images as (batch, height, width, 3), or of labels: what Grain hands over is its workers'."""
        array = np.array(part)
        return array.transpose(0, 2, 3, 1) if self._framework == "pytorch" and array.ndim == 4 else array

    def _encode_jpeg(self, image: NDArray[np.uint8]) -> bytes:
        """Return an image (height, width, 3) as a JPEG file, by the framework's own encoder or its image library."""
        if self._framework == "tensorflow":
            data: bytes = import_module("tensorflow").io.encode_jpeg(image, quality=95).numpy()
            return data
        if self._framework == "pytorch":
            channels_first = import_module("torch").from_numpy(image.transpose(2, 0, 1).copy())
            return bytes(import_module("torchvision.io").encode_jpeg(channels_first, quality=95).numpy())
        file = BytesIO()
        import_module("PIL.Image").fromarray(image).save(file, "JPEG", quality=95)
        return file.getvalue()

    def open_pairs(self, folder: str = "folders", **fields: Any) -> Batches:
        """Return the pipeline of a CycleGAN cell of 32 pixels."""
        return self.open(folder, model="cyclegan", num_classes=None, input_size=32, **fields)

    def take(self, batches: Batches, number: int) -> tuple[NDArray[Any], ...]:
        """Return the next batches as one, images as (batch, height, width, 3)."""
        taken = [tuple(map(self._to_nhwc, next(batches))) for _ in range(number)]
        return tuple(np.concatenate(parts) for parts in zip(*taken, strict=True))

    def ask_cifar10(self) -> dict[str, Any]:
        """Infer and train on CIFAR-10's files."""
        batches = self.open("cifar", phase="infer", batch_size=10)
        images, labels = next(batches)
        kinds = [[list(part.shape), str(part.dtype)] for part in (images, labels)]
        _, more_labels = self.take(batches, 4)
        resized, _ = self.take(self.open("cifar", phase="infer", batch_size=4, input_size=64), 1)
        shrunk, _ = self.take(self.open("cifar", phase="infer", batch_size=4, input_size=24), 1)
        return {
            "kinds": kinds,
            "image": self._to_nhwc(images)[3].tolist(),
            "labels": [*self._to_nhwc(labels).tolist(), *more_labels.tolist()],
            "resized": resized[3].tolist(),
            "shrunk": shrunk[3].tolist(),
            "training": self.train_on_cifar10(),
        }

    def train_on_cifar10(self) -> dict[str, Any]:
        """Take six epochs; say of each image what was done to it. Open anew, with the same seed and with another."""
        images, labels = self.take(self.open("cifar", num_threads=2, batch_size=20, seed=3), 30)
        again, _ = self.take(self.open("cifar", num_threads=2, batch_size=20, seed=3), 2)
        other, _ = self.take(self.open("cifar", batch_size=20, seed=4), 2)
        pixels = (images * CIFAR_STD + CIFAR_MEAN) * 255
        return {
            "images": [
                [*describe_cifar10_image(image), int(label)] for image, label in zip(pixels, labels, strict=True)
            ],
            "seeded_alike": [np.array_equal(images[:40], again), np.array_equal(images[:40], other)],
        }

    def ask_image_folders(self) -> dict[str, Any]:
        """Infer and train on image folders."""
        inferred = self.take(self.open_pairs(phase="infer", batch_size=5), 3)
        batches = self.open_pairs(num_threads=2, batch_size=5)
        first = next(batches)
        kinds = [[list(part.shape), str(part.dtype)] for part in first]
        trained = self.take(chain([first], batches), 21)
        return {
            "kinds": kinds,
            "extremes": [float(min(map(np.min, trained))), float(max(map(np.max, trained)))],
            "inferred": [[describe_png_image(image) for image in domain] for domain in inferred],
            "trained": [[describe_png_image(image) for image in domain] for domain in trained],
        }

    def ask_jpegs(self) -> dict[str, Any]:
        """Decode JPEG files of one colour; meet a damaged one in the middle of a run."""
        folder = self._folder / "jpegs"
        image = np.full((40, 48, 3), COLOUR, dtype=np.uint8)
        for name in ("testA/one.JPEG", "testB/one.jpg", "trainA/one.jpg", "trainB/one.jpg"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(self._encode_jpeg(image))
        pair = self.take(self.open_pairs("jpegs", phase="infer", batch_size=1), 1)
        # Begins and ends as a JPEG file does, with nothing between.
        (folder / "trainB" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0\0\2\xff\xda\0\2\xff\xd9")
        damage = "no error"
        try:  # in the second file of a domain of two
            self.take(self.open_pairs("jpegs", batch_size=1), 2)
        except UserError as error:
            damage = str(error)
        return {
            "colours": [((domain + 1) * 127.5).mean(axis=(0, 1, 2)).tolist() for domain in pair],
            "damage": damage,
        }


def describe_cifar10_image(pixels: NDArray[Any]) -> tuple[int, int, bool, bool]:
    """Return the image's number, the rows it was moved up by, whether it was flipped, whether its top row is black."""
    red, green, blue = pixels[16, 16]
    is_flipped = pixels[16, 8, 1] > pixels[16, 23, 1]
    return round(float(red)), round(float(blue) / 8) - 16, bool(is_flipped), bool(np.abs(pixels[0]).max() < 0.5)


def describe_png_image(image: NDArray[Any]) -> tuple[int, bool, float]:
    """Return the image's number, whether it was flipped, and blue of its middle row in [0, 255]."""
    pixels = (image + 1) * 127.5
    return round(float(pixels[16, 16, 0]) / 10), bool(pixels[16, 4, 1] > pixels[16, 27, 1]), float(pixels[16, 16, 2])


def main(framework: Framework, folder: Path, *, is_left: bool) -> None:
    questions = Questions(framework, folder)
    if is_left:
        questions.take(questions.open("cifar", num_threads=2, batch_size=10), 1)
        answers: Any = [child.pid for child in active_children()]
    else:
        answers = {
            "cifar": questions.ask_cifar10(),
            "folders": questions.ask_image_folders(),
            "jpegs": questions.ask_jpegs(),
        }
    print(json.dumps(answers), flush=True)
    os._exit(0)  # as `python -m bench` ends


if __name__ == "__main__":
    main(cast(Framework, sys.argv[1]), Path(sys.argv[2]), is_left=sys.argv[3:] == ["leave"])
