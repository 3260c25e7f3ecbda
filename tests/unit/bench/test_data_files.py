"""The files of a data_dir: what is whole is found, and every error is one message before the first step."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.data.files import Cifar10Records, find_cifar10_files, find_image_files
from bench.errors import UserError
from bench.schema import Phase
from factories import make_cell
from tiny_data import NUM_IMAGES_A, NUM_TRAINING_IMAGES, make_cifar10_image, write_cifar10, write_image_folders


def find_cifar10(folder: Path, phase: Phase = "train", **fields: Any) -> tuple[Path, ...]:
    return find_cifar10_files(make_cell(data_dir=str(folder), phase=phase, **({"batch_size": 8} | fields)))


def find_images(folder: Path, phase: Phase = "train", **fields: Any) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    given = {"model": "cyclegan", "num_classes": None, "batch_size": 1, "data_dir": str(folder), "phase": phase}
    return find_image_files(make_cell(**(given | fields)))


def test_training_and_inference_have_files_of_their_own(tmp_path: Path) -> None:
    cifar, folders = write_cifar10(tmp_path / "cifar"), write_image_folders(tmp_path / "folders")
    assert [path.name for path in find_cifar10(cifar)] == [f"data_batch_{i}.bin" for i in range(1, 6)]
    assert [path.name for path in find_cifar10(cifar, "infer")] == ["test_batch.bin"]
    assert [paths[0].parent.name for paths in find_images(folders)] == ["trainA", "trainB"]
    assert [paths[0].parent.name for paths in find_images(folders, "infer")] == ["testA", "testB"]


def test_records_run_through_files_of_unequal_length(tmp_path: Path) -> None:
    folder = write_cifar10(tmp_path)
    records = Cifar10Records([folder / "test_batch.bin", folder / "data_batch_2.bin"])
    assert len(records) == 24 + 20
    for index, number in ((0, 0), (23, 23), (24, 20), (43, 39)):
        image, label = records[index]
        assert label == number % 10
        assert np.array_equal(make_cifar10_image(number), image.transpose(1, 2, 0))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut_last_byte(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


CIFAR_DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "missing": (Path.unlink, "data_batch_3.bin is missing; give the folder cifar-10-batches-bin"),
    "cut off": (cut_last_byte, "data_batch_3.bin has 61459 bytes, expected whole records of 3073 bytes"),
    "empty": (empty, "data_batch_3.bin has 0 bytes, expected whole records"),
}


@pytest.mark.parametrize("name", CIFAR_DAMAGE)
def test_a_damaged_cifar10_file_is_one_message(tmp_path: Path, name: str) -> None:
    damage, expected = CIFAR_DAMAGE[name]
    damage(write_cifar10(tmp_path) / "data_batch_3.bin")
    with pytest.raises(UserError) as caught:
        find_cifar10(tmp_path)
    assert str(caught.value).startswith(f"data_dir: {tmp_path}/{expected}")
    assert "\n" not in str(caught.value)


def test_a_missing_folder_is_one_message(tmp_path: Path) -> None:
    for find in (find_cifar10, find_images):
        with pytest.raises(UserError, match=f"^data_dir: there is no folder {tmp_path}/none; give .*, or leave"):
            find(tmp_path / "none")
    folder = write_image_folders(tmp_path)
    (folder / "trainB").rename(folder / "trainC")
    with pytest.raises(UserError, match=f"^data_dir: there is no folder {tmp_path}/trainB; give a folder with trainA"):
        find_images(folder)


def test_a_batch_needs_as_many_images(tmp_path: Path) -> None:
    cifar, folders = write_cifar10(tmp_path / "cifar"), write_image_folders(tmp_path / "folders")
    assert len(find_cifar10(cifar, batch_size=NUM_TRAINING_IMAGES)) == 5
    with pytest.raises(UserError, match="holds 100 images, a batch takes 101; add images or lower batch_size$"):
        find_cifar10(cifar, batch_size=NUM_TRAINING_IMAGES + 1)
    assert len(find_images(folders, batch_size=NUM_IMAGES_A)[0]) == NUM_IMAGES_A
    with pytest.raises(UserError, match=f"^data_dir: {folders}/trainA holds 5 images, a batch takes 6"):
        find_images(folders, batch_size=NUM_IMAGES_A + 1)


def test_images_are_found_by_their_names_and_other_files_are_left_alone(tmp_path: Path) -> None:
    folder = write_image_folders(tmp_path) / "trainA"
    for name in ("a.JPG", "b.jpeg", "readme.txt"):
        (folder / name).write_bytes(b"damage is met when an image is decoded")
    assert len(find_images(tmp_path)[0]) == NUM_IMAGES_A + 2
