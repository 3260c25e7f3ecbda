"""A checkout whose image needs one tiny package from a local folder, so that it installs in a second, offline."""

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

BACKEND = """
import zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "benchmatrix_bench-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        info = "benchmatrix_bench-0.1.0.dist-info"
        wheel.writestr("bench.pth", "")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: benchmatrix-bench\\nVersion: 0.1.0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "benchmatrix-bench"
version = "0.1.0"
"""


def make_checkout(root: Path) -> Mapping[str, str]:
    """Make a checkout with an image for PyTorch in `root`; returns the variables that keep uv off the network."""
    packages = root / "packages"
    packages.mkdir(parents=True)
    project = root / "images" / "bench"
    project.mkdir(parents=True)
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "backend.py").write_text(BACKEND)
    wheel = make_wheel(packages, "tiny_framework", "1.0")
    (root / "images" / "pytorch").mkdir()
    write_requirements(root, f"tiny-framework==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(packages), "PIP_CONFIG_FILE": "/dev/null"}


def write_requirements(root: Path, text: str) -> None:
    """Replace what the image for PyTorch installs on CPUs."""
    (root / "images" / "pytorch" / "requirements-cpu.txt").write_text(text)


def make_wheel(folder: Path, name: str, version: str) -> Path:
    """Return a wheel of one empty module in `folder`."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", "")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path
