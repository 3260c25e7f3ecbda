"""The images for GPUs as containers: they find the driver where GKE mounts it, and where NVIDIA's toolkit does.

Each framework's image is built, if it is not there: 25 GB in all while they are. `-k jax` tests one of them.
"""

import ast
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from gpu_nodes import GKE_FOLDER, SYSTEM_FOLDER

from bench.errors import EXIT_NODE_FAULT, EXIT_USER_ERROR
from bench.registry import FRAMEWORKS
from bench.schema import Framework
from bench.worker.request import Order
from factories import make_cell
from stand_in_driver import CARD_NAME, CARD_UUID, CUDA_VARIABLE

ON_GPUS = [name for name, framework in FRAMEWORKS.items() if "gpu" in framework.devices]
# What the driver installs ("Installed Components" of NVIDIA's driver README). An image with one of these would run
# another driver's library than the kernel's, or hide it.
DRIVER_LIBRARIES = ("libcuda.so*", "libnvidia-*", "libcudadebugger*", "libnvcuvid*", "libnvoptix*")


# A call by which each framework loads CUDA's library and asks it for devices; that the stand-in has none is an error.
LOOK_FOR_DEVICES: dict[Framework, str] = {
    "pytorch": "import torch; torch.cuda.init()",
    "tensorflow": "import tensorflow; tensorflow.config.list_physical_devices('GPU')",
    "jax": "import jax; jax.devices('cuda')",
}


@dataclass(frozen=True, kw_only=True)
class CudaImage:
    """A framework's image for GPUs."""

    framework: Framework
    name: str


@pytest.fixture(scope="module", params=ON_GPUS)
def image(request: pytest.FixtureRequest, build_image: Callable[[str], str]) -> CudaImage:
    framework: Framework = request.param
    return CudaImage(framework=framework, name=build_image(f"{framework}:cuda"))


def run_cell(docker: str, image: CudaImage, *options: str, cuda: int = 999) -> "subprocess.CompletedProcess[str]":
    """Run the image as a pod would, on a card where CUDA's first call ends with the code `cuda`."""
    mode = "compiled" if image.framework == "jax" else "eager"
    cell = make_cell(framework=image.framework, mode=mode, device="gpu", batch_size=4)
    order = Order(cell=cell, run_id="r", repeat=1, attempt="a", store_url="file:///tmp/store")
    words = [docker, "run", "--rm", "--read-only", "--tmpfs", "/tmp:exec", "--cap-drop", "ALL", "--network", "none"]
    for name, value in {**order.to_variables(), CUDA_VARIABLE: str(cuda)}.items():
        words += ["--env", f"{name}={value}"]
    return subprocess.run([*words, *options, image.name], capture_output=True, text=True, check=False)


def ask_python(docker: str, image: CudaImage, program: str, *options: str) -> str:
    command = [
        docker,
        "run",
        "--rm",
        "--network",
        "none",
        *options,
        "--entrypoint",
        "python",
        image.name,
        "-c",
        program,
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def mount(driver: Path, folder: str) -> list[str]:
    return [word for path in driver.iterdir() for word in ("--volume", f"{path}:{folder}/{path.name}:ro")]


@pytest.mark.parametrize("folder", [f"{GKE_FOLDER}/lib64", SYSTEM_FOLDER])
def test_nvml_and_cuda_are_found_where_nodes_put_them(docker: str, image: CudaImage, driver: Path, folder: str) -> None:
    done = run_cell(docker, image, *mount(driver, folder))
    assert EXIT_NODE_FAULT == done.returncode, done.stderr
    assert "cuInit ended with code 999, CUDA_ERROR_UNKNOWN: unknown error" in done.stderr
    assert f"NVML shows {CARD_NAME} {CARD_UUID} of 15360 MiB with driver 580.95.05" in done.stderr


def test_an_image_that_does_not_look_into_gkes_folder_is_told_how_to(
    docker: str, image: CudaImage, driver: Path
) -> None:
    folder = f"{GKE_FOLDER}/lib64"
    done = run_cell(docker, image, *mount(driver, folder), "--env", "LD_LIBRARY_PATH=")
    assert EXIT_USER_ERROR == done.returncode, done.stderr
    assert f"set LD_LIBRARY_PATH={folder} in the image, or in `environment` of the profile" in done.stderr


def test_a_node_without_a_driver_is_at_fault(docker: str, image: CudaImage) -> None:
    done = run_cell(docker, image)
    assert EXIT_NODE_FAULT == done.returncode, done.stderr
    assert "no NVIDIA GPU can be seen (NVMLError_LibraryNotFound: NVML Shared Library Not Found)" in done.stderr


@pytest.mark.parametrize("folder", [f"{GKE_FOLDER}/lib64", SYSTEM_FOLDER])
def test_the_framework_itself_loads_cuda_from_there(docker: str, image: CudaImage, driver: Path, folder: str) -> None:
    program = f"""
try:
    {LOOK_FOR_DEVICES[image.framework]}
except Exception as error:
    print(error)
print([line.split()[-1] for line in open("/proc/self/maps") if "libcuda.so" in line])
"""
    loaded = ask_python(docker, image, program, *mount(driver, folder)).splitlines()[-1]
    assert {f"{folder}/libcuda.so.1"} == set(ast.literal_eval(loaded)), loaded


def test_a_card_that_the_framework_cannot_use_is_a_fault_of_the_node(
    docker: str, image: CudaImage, driver: Path
) -> None:
    """CUDA starts and can do nothing else, so the preflight finds no fault: the framework does."""
    done = run_cell(docker, image, *mount(driver, f"{GKE_FOLDER}/lib64"), cuda=0)
    assert EXIT_NODE_FAULT == done.returncode, done.stderr
    assert "fault of this machine, not of the cell: " in done.stderr.splitlines()[-1]
    assert FRAMEWORKS[image.framework].label in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("image", ["pytorch"], indirect=True)
def test_triton_links_its_launchers_against_the_driver_in_gkes_folder(
    docker: str, image: CudaImage, driver: Path
) -> None:
    """It asks `ldconfig -p` first, which knows nothing of the folder, and LD_LIBRARY_PATH then."""
    folder = f"{GKE_FOLDER}/lib64"
    program = "from triton.backends.nvidia.driver import libcuda_dirs; print(libcuda_dirs())"
    assert f"['{folder}']\n" == ask_python(docker, image, program, *mount(driver, folder))


def test_the_drivers_folder_and_the_frameworks_libraries_have_no_name_in_common(docker: str, image: CudaImage) -> None:
    program = f"import pathlib; print([p for g in {DRIVER_LIBRARIES!r} for p in pathlib.Path('/opt/bench').rglob(g)])"
    assert "[]\n" == ask_python(docker, image, program)
