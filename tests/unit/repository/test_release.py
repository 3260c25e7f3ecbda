"""The distribution: one package at the top level, which works in an empty folder without the checkout."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import __version__
from runner.images import list_images, name_image

ROOT = Path(__file__).parents[3]
STORE = f"file://{ROOT}/docs/results/2026-11-21-h200"

Call = Callable[..., str]


def test_the_tool_asks_for_what_bench_needs_and_has_its_version() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())
    bench = tomllib.loads((ROOT / "images/bench/pyproject.toml").read_text())

    names = [{re.split(r"[<>=]", one)[0] for one in project["project"]["dependencies"]} for project in (tool, bench)]
    assert names[1] <= names[0]
    assert (ROOT / tool["tool"]["hatch"]["version"]["path"]).samefile(
        ROOT / "images" / "bench" / bench["tool"]["hatch"]["version"]["path"]
    )
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)


def build(project: Path, target: str, folder: Path, repository: str = "") -> Path:
    """Return the sdist or wheel of a project, made without a network; `repository`: its name on GitHub, if there."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    place = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": repository}
    subprocess.run(command, cwd=project, check=True, capture_output=True, env=os.environ | place)
    (found,) = folder.iterdir()
    return found


def build_by_sdist(project: Path, folder: Path) -> Path:
    """Return the wheel that pip would make of a project's sdist."""
    folder.mkdir()
    with tarfile.open(build(project, "sdist", folder / "sdist")) as archive:
        archive.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    return build(source, "wheel", folder / "wheel")


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Call:
    """Calls the installed command line in an empty folder; it sees the dependencies of this one, and no checkout."""
    folder = tmp_path_factory.mktemp("a release")
    venv.create(folder / "venv", with_pip=False)
    site = folder / "venv" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    with zipfile.ZipFile(build_by_sdist(ROOT, folder / "tool")) as wheel:
        wheel.extractall(site)
    assert sorted(path.name for path in site.iterdir()) == ["benchmatrix", f"benchmatrix-{__version__}.dist-info"]
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))  # its own .pth files are not read there
    (folder / "empty").mkdir()
    for name in ("bench", "runner", "collector"):  # the user's own
        (folder / "empty" / f"{name}.py").write_text("raise SystemExit('a program of the user ran')")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BENCHMATRIX"))}
    variables |= {"HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": "."}

    def call(*words: str) -> str:
        command = [str(folder / "venv" / "bin" / "python"), "-m", "benchmatrix", *words]
        done = subprocess.run(command, cwd=folder / "empty", env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_the_wheel_works_beside_files_of_the_same_names(call: Call) -> None:
    assert call("--version") == f"{__version__}\n"
    assert len(call("render", "smoke").splitlines()) == 16
    report = Path(call("report", "study-h200-2", "--store", STORE, "--output", "report").strip())
    assert report == Path("report/report.html")


def test_images_of_the_wheel_have_the_tags_of_the_checkout(call: Call) -> None:
    names = [f"{image.name}:{image.flavour}" if image.flavour else image.name for image in list_images()]

    assert [name_image("r", image) for image in list_images()] == call(
        "images", "push", "r", *names, "--dry-run"
    ).split()
