"""The image for GPUs as a container: it finds the driver where GKE mounts it, and where NVIDIA's toolkit does."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from gpu_nodes import GKE_FOLDER, SYSTEM_FOLDER

from bench.exit_codes import EXIT_NODE_FAULT, EXIT_USER_ERROR
from bench.order import Order
from factories import make_cell
from stand_in_driver import CARD_NAME, CARD_UUID, CUDA_VARIABLE

CELL = make_cell(device="gpu", batch_size=4)
# What the driver installs ("Installed Components" of NVIDIA's driver README). An image with one of these would run
# another driver's library than the kernel's, or hide it.
DRIVER_LIBRARIES = ("libcuda.so*", "libnvidia-*", "libcudadebugger*", "libnvcuvid*", "libnvoptix*")


@pytest.fixture(scope="module")
def image(build_image: Callable[[str], str]) -> str:
    return build_image("pytorch:cuda")


def run_cell(docker: str, image: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run the image as a pod would, on a card whose CUDA does not start."""
    order = Order(cell=CELL, run_id="r", repeat=1, attempt="a", store_url="file:///tmp/store")
    words = [docker, "run", "--rm", "--read-only", "--tmpfs", "/tmp:exec", "--cap-drop", "ALL", "--network", "none"]
    for name, value in {**order.to_variables(), CUDA_VARIABLE: "999"}.items():
        words += ["--env", f"{name}={value}"]
    return subprocess.run([*words, *options, image], capture_output=True, text=True, check=False)


def ask_python(docker: str, image: str, program: str, *options: str) -> str:
    command = [docker, "run", "--rm", "--network", "none", *options, "--entrypoint", "python", image, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def mount(driver: Path, folder: str) -> list[str]:
    return [word for path in driver.iterdir() for word in ("--volume", f"{path}:{folder}/{path.name}:ro")]


@pytest.mark.parametrize("folder", [f"{GKE_FOLDER}/lib64", SYSTEM_FOLDER])
def test_nvml_and_cuda_are_found_where_nodes_put_them(docker: str, image: str, driver: Path, folder: str) -> None:
    done = run_cell(docker, image, *mount(driver, folder))
    assert EXIT_NODE_FAULT == done.returncode, done.stderr
    assert "cuInit ended with code 999, CUDA_ERROR_UNKNOWN: unknown error" in done.stderr
    assert f"NVML shows {CARD_NAME} {CARD_UUID} of 15360 MiB with driver 580.95.05" in done.stderr


def test_an_image_that_does_not_look_into_gkes_folder_is_told_how_to(docker: str, image: str, driver: Path) -> None:
    folder = f"{GKE_FOLDER}/lib64"
    done = run_cell(docker, image, *mount(driver, folder), "--env", "LD_LIBRARY_PATH=")
    assert EXIT_USER_ERROR == done.returncode, done.stderr
    assert f"set LD_LIBRARY_PATH={folder} in the image, or in `environment` of the profile" in done.stderr


def test_a_node_without_a_driver_is_at_fault(docker: str, image: str) -> None:
    done = run_cell(docker, image)
    assert EXIT_NODE_FAULT == done.returncode, done.stderr
    assert "no NVIDIA GPU can be seen (NVMLError_LibraryNotFound: NVML Shared Library Not Found)" in done.stderr


def test_triton_links_its_launchers_against_the_driver_in_gkes_folder(docker: str, image: str, driver: Path) -> None:
    """It asks `ldconfig -p` first, which knows nothing of the folder, and LD_LIBRARY_PATH then."""
    folder = f"{GKE_FOLDER}/lib64"
    program = "from triton.backends.nvidia.driver import libcuda_dirs; print(libcuda_dirs())"
    assert f"['{folder}']\n" == ask_python(docker, image, program, *mount(driver, folder))


def test_the_drivers_folder_and_the_frameworks_libraries_have_no_name_in_common(docker: str, image: str) -> None:
    program = f"import pathlib; print([p for g in {DRIVER_LIBRARIES!r} for p in pathlib.Path('/opt/bench').rglob(g)])"
    assert "[]\n" == ask_python(docker, image, program)
