"""runner.images: what Docker is asked to build and push, what is said of it, what goes into a build."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from bench.errors import UserError
from bench.schema import Framework
from fake_interpreters import make_interpreter
from runner.cli import app
from runner.images import find_image, is_built, list_images, make_arguments, name_image, push_images, run_docker
from runner.sources import ROOT

BASE = "python@sha256:00"
DIGEST = "d" * 64
INDEX = "https://index.example/cpu"
# Stands in for the engine, which is far too slow here: it has the images that the file `built` names.
DOCKER = """
echo "$@" >> {folder}/log
case "$1 $2" in
"image ls") grep -sxF "$4" {folder}/built;;
"image inspect") echo "elsewhere/x@sha256:{other}"; echo "${{5%:*}}@sha256:{digest}";;
esac
exit 0
"""

CallImages = Callable[..., Result]


@pytest.fixture
def call_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CallImages:
    """Calls `benchmatrix images WORDS`; `tmp_path / "log"` gets what the Docker client was called with."""
    make_interpreter(tmp_path / "docker", DOCKER.format(folder=tmp_path, digest=DIGEST, other="e" * 64))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return lambda *words: CliRunner().invoke(app, ["images", *words], catch_exceptions=False)


def name_pytorch(registry: str = "benchmatrix") -> str:
    return name_image(registry, find_image("pytorch", "cpu"), make_arguments(BASE, ""))


def test_a_dry_run_builds_and_pushes_nothing(call_images: CallImages, tmp_path: Path) -> None:
    built = call_images("build", "jax:cpu", "--base", BASE, "--dry-run")
    pushed = call_images("push", "host.example/team", "jax:cpu", "--base", BASE, "--dry-run")

    with_index = make_arguments(BASE, INDEX)
    for words in (("build",), ("push", "benchmatrix")):
        torch = call_images(*words, "pytorch:cpu", "--base", BASE, "--cpu-index", INDEX, "--dry-run")
        assert torch.stdout.split()[0] == name_image("benchmatrix", find_image("pytorch", "cpu"), with_index)
    assert built.stdout.startswith("benchmatrix/jax:cpu-")
    assert pushed.stdout.startswith("host.example/team/jax:cpu-")
    assert not (tmp_path / "log").exists()


def test_a_build_passes_the_arguments_that_the_image_depends_on(call_images: CallImages, tmp_path: Path) -> None:
    call_images("build", "jax:cpu", "--base", BASE, "--cpu-index", INDEX, "--network", "host")

    (line,) = [line for line in (tmp_path / "log").read_text().splitlines() if line.startswith("build ")]
    assert "--file images/framework.Dockerfile " in line
    assert line.endswith(" .")
    assert " --network host " in line
    words = line.split()
    given = dict(words[i + 1].split("=", 1) for i, word in enumerate(words) if word == "--build-arg")
    assert given.pop("REVISION")
    assert given == {"BASE": BASE, "FRAMEWORK": "jax", "FLAVOUR": "cpu"}


def test_what_is_built_is_not_built_again(call_images: CallImages, tmp_path: Path) -> None:
    (tmp_path / "built").write_text(f"{name_pytorch()}\n")

    built = call_images("build", "pytorch:cpu", "--base", BASE)

    assert built.stdout.startswith(f"{name_pytorch()} is there\n")
    assert "build " not in (tmp_path / "log").read_text()


def test_a_push_prints_the_lines_for_profile_and_chart_by_digest(call_images: CallImages, tmp_path: Path) -> None:
    control = next(image for image in list_images() if image.flavour is None)
    names = (name_pytorch(), name_image("benchmatrix", control, make_arguments(BASE, "")))
    (tmp_path / "built").write_text("\n".join(names) + "\n")

    pushed = call_images("push", "host.example/team", "pytorch:cpu", "control", "--base", BASE)

    for_profile, _, for_chart = pushed.stdout.partition("for the chart's values, by digest:\n")
    images = {"pytorch": {"cpu": f"host.example/team/pytorch@sha256:{DIGEST}"}}
    assert yaml.safe_load(for_profile.partition("\n")[2]) == {"images": images}
    assert yaml.safe_load(for_chart) == {
        "image": {"repository": "host.example/team/control", "digest": f"sha256:{DIGEST}"},
        "profile": {"images": images},
    }
    assert f"push --quiet {name_pytorch('host.example/team')}" in (tmp_path / "log").read_text()


def test_every_lock_has_hashes_and_no_dockerfile_has_a_moving_tag() -> None:
    for image in list_images():
        for source in image.sources:
            if source.endswith((".txt", ".lock")):
                lines = (ROOT / source).read_text().splitlines()
                assert any("--hash=sha256:" in line for line in lines), source
        dockerfile = (ROOT / image.dockerfile).read_text()
        assert ":latest" not in dockerfile
        assert "USER 65532:65532" in dockerfile
        assert dockerfile.count("ENTRYPOINT") == 1


def test_the_requirements_of_every_framework_are_sent_to_the_engine() -> None:
    """A pattern such as `images/*/...` sends none of them."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    for image in list_images():
        if image.flavour is not None:
            assert f"!images/{image.name}/requirements-*.txt" in lines


def test_the_images_for_gpus_look_for_the_driver_where_gke_mounts_it() -> None:
    """Without an engine; tests/e2e/test_cuda_image.py asks the images themselves."""
    for_gpus = [image for image in list_images() if image.flavour == "cuda"]
    assert for_gpus
    for image in for_gpus:
        _, *stages = re.split(r"^FROM ", (ROOT / image.dockerfile).read_text(), flags=re.M)
        found = {stage.partition("\n")[0]: re.findall(r"\bLD_LIBRARY_PATH=(\S+)", stage) for stage in stages}
        assert {stage: folders for stage, folders in found.items() if folders} == {
            "base-cpu AS base-cuda": ["/usr/local/nvidia/lib64"]
        }
        assert stages[-1].startswith("base-${FLAVOUR}\n")


def install(folder: Path, framework: Framework, flavour: str, *cpu_index: str) -> list[list[str]]:
    """Call the images' script in an environment whose pip prints its arguments; return them for each call of pip."""
    (folder / "bin").mkdir(exist_ok=True)
    make_interpreter(folder / "bin" / "pip", 'echo "$@"')
    requirements = ROOT / "images" / framework / f"requirements-{flavour}.txt"
    command = ["sh", str(ROOT / "images" / "install_requirements.sh"), str(folder), str(requirements), *cpu_index]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("framework", "flavour", "cpu_index"), [("pytorch", "cuda", INDEX), ("jax", "cpu", INDEX)])
def test_an_image_installs_what_is_locked_with_its_hashes(
    framework: Framework, flavour: str, cpu_index: str, tmp_path: Path
) -> None:
    (words,) = install(tmp_path, framework, flavour, cpu_index)
    assert "--require-hashes" in words
    assert words[-1].endswith(f"images/{framework}/requirements-{flavour}.txt")


def test_with_an_index_of_builds_without_cuda_pytorch_comes_from_there_and_cuda_stays_out(tmp_path: Path) -> None:
    locked = (ROOT / "images/pytorch/requirements-cpu.txt").read_text().split()
    torch, torchvision = (
        next(word for word in locked if word.startswith(f"{name}==")) for name in ("torch", "torchvision")
    )
    pytorch, others = install(tmp_path, "pytorch", "cpu", INDEX)
    assert pytorch[-4:] == ["--extra-index-url", INDEX, f"{torch}+cpu", f"{torchvision}+cpu"]
    names = {word.partition("==")[0] for word in others if "==" in word}
    assert {"numpy", "pydantic"} <= names
    assert not [name for name in names if name.startswith(("torch", "nvidia", "cuda", "triton"))]


@pytest.mark.parametrize(
    ("body", "call", "message"),
    [
        (
            "echo other/x@sha256:dd",
            lambda: push_images("host.example/team", [find_image("pytorch", "cpu")], {}),
            "names no digest of host.example/team/pytorch; was it pushed there",
        ),
        (None, lambda: is_built("x"), "docker: is not installed"),
        (
            "echo 'RUN HF_TOKEN=hunter2 pip install' >&2; echo last >&2; exit 3",
            lambda: run_docker("build", "."),
            r"^docker build failed \(exit code 3\):\n(.*\n)*last$",
        ),
        (
            "while :; do :; done",
            lambda: run_docker("image", "ls", limit_seconds=0.3),
            "^docker image: has not ended after 0.3 s; see what the Docker engine waits for$",
        ),
    ],
)
def test_what_the_client_fails_at_is_told_without_credentials(
    body: str | None, call: Callable[[], object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if body is not None:
        make_interpreter(tmp_path / "docker", body)
    with pytest.raises(UserError, match=message) as caught:
        call()
    assert "hunter2" not in str(caught.value)
