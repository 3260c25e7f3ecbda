"""`benchmatrix images`: names in; images built and pushed with Docker, and the lines for profile and chart, out."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
import yaml

from bench.errors import UserError
from runner.checkout import read_git_revision, require_checkout
from runner.commands.options import CONSOLE
from runner.images.names import CONTROL, DEFAULT_BASE, LOCAL_REGISTRY, Image, list_images, make_arguments, name_image

app = typer.Typer(help="Build and push the container images of this checkout.", no_args_is_help=True)

PROFILE_KEYS = {"BASE": "image_base", "CPU_INDEX": "image_cpu_index"}
"""What a profile calls the options of a build that change a tag."""

OnlyArgument = Annotated[
    list[str] | None, typer.Argument(help="Names, with or without flavour: `jax`, `jax:cpu`. Left out: all CPU images.")
]
BaseOption = Annotated[str, typer.Option(help="The image below: a Python 3.11 on Debian 12, by tag or digest.")]
IndexOption = Annotated[str, typer.Option(help="An index with PyTorch without CUDA, for the CPU image.")]
NetworkOption = Annotated[str, typer.Option(help="Docker's network for the build; `host` where it needs the host's.")]


@app.command("list")
def list_names(
    only: OnlyArgument = None,
    registry: str = LOCAL_REGISTRY,
    base: BaseOption = DEFAULT_BASE,
    cpu_index: IndexOption = "",
) -> None:
    """Print the images' names with the tags that a build with these options gives them."""
    for image in choose_images(only):
        typer.echo(name_image(registry, image, make_arguments(base, cpu_index)))


@app.command()
def build(
    only: OnlyArgument = None, base: BaseOption = DEFAULT_BASE, cpu_index: IndexOption = "", network: NetworkOption = ""
) -> None:
    """Build images that are not there yet; the tag is the content."""
    arguments = make_arguments(base, cpu_index)
    for image in choose_images(only):
        name = name_image(LOCAL_REGISTRY, image, arguments)
        if _has_image(name):
            CONSOLE.print(f"{name} is there")
            continue
        CONSOLE.print(f"building {name}")
        _run_docker(*_list_build_words(image, name, arguments, network))
        CONSOLE.print(f"{name}: {_read_size(name)}")
    _tell_profile_keys(arguments)


@app.command()
def push(
    registry: Annotated[str, typer.Argument(help="Where a cluster can pull them: HOST/PROJECT/REPOSITORY.")],
    only: OnlyArgument = None,
    base: BaseOption = DEFAULT_BASE,
    cpu_index: IndexOption = "",
) -> None:
    """Push built images to a registry; prints the lines for your profile and for the chart's values, by digest."""
    references: dict[str, dict[str, str]] = {}
    control = None
    arguments = make_arguments(base, cpu_index)
    for image in choose_images(only):
        local, remote = (name_image(place, image, arguments) for place in (LOCAL_REGISTRY, registry))
        _require_built(local, image)
        _run_docker("tag", local, remote)
        _run_docker("push", "--quiet", remote)
        if image.name == CONTROL:
            control = _read_digest(remote)
        else:
            device = "gpu" if image.flavour == "cuda" else "cpu"
            references.setdefault(image.name, {})[device] = _read_digest(remote)
    if references:
        CONSOLE.print("for your profile, by digest:")
        typer.echo(yaml.safe_dump({"images": references}))
    if control is not None:
        CONSOLE.print("for the chart's values, by digest:")
        typer.echo(yaml.safe_dump(_make_chart_values(control, references), sort_keys=False))


@app.command()
def sbom(
    only: OnlyArgument = None,
    base: BaseOption = DEFAULT_BASE,
    cpu_index: IndexOption = "",
    output: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("sbom"),
) -> None:
    """Write a bill of materials (CycloneDX) of each built image."""
    from runner.images.sbom import LIST_DEBIAN, LIST_PYTHON, write_bom

    arguments = make_arguments(base, cpu_index)
    output.mkdir(parents=True, exist_ok=True)
    for image in choose_images(only):
        name = name_image(LOCAL_REGISTRY, image, arguments)
        _require_built(name, image)
        inside = [
            _run_docker("run", "--rm", "--network", "none", "--entrypoint", words[0], name, *words[1:])
            for words in (LIST_PYTHON, LIST_DEBIAN)
        ]
        digest = _run_docker("image", "inspect", "--format", "{{.Id}}", name)
        path = output / f"{name.rpartition('/')[2].replace(':', '-')}.cdx.json"
        path.write_text(write_bom(name, digest, *inside), encoding="utf-8")
        CONSOLE.print(str(path), soft_wrap=True)


def choose_images(only: Sequence[str] | None) -> list[Image]:
    """Return the images that the words name; UserError where one names none. No words: those without CUDA."""
    if not only:
        return [image for image in list_images() if image.flavour != "cuda"]
    chosen = []
    for word in only:
        name, _, flavour = word.partition(":")
        found = [image for image in list_images() if image.name == name and flavour in ("", image.flavour)]
        if not found:
            known = ", ".join(dict.fromkeys(image.name for image in list_images()))
            raise UserError(f"image '{word}': is none; there are {known}, each with :cpu or :cuda")
        chosen += found
    return chosen


def _tell_profile_keys(arguments: Mapping[str, str]) -> None:
    """Print what a profile with `registry` has to say so that a run looks for images with these options."""
    if arguments:
        CONSOLE.print("a run finds these images only by a profile that says, beside `registry`:")
        keys = {PROFILE_KEYS[name]: value for name, value in arguments.items()}
        typer.echo(yaml.safe_dump(keys, sort_keys=False).rstrip())


def _make_chart_values(control: str, references: Mapping[str, Mapping[str, str]]) -> dict[str, object]:
    repository, _, digest = control.partition("@")
    values: dict[str, object] = {"image": {"repository": repository, "digest": digest}}
    return values | ({"profile": {"images": references}} if references else {})


def _list_build_words(image: Image, name: str, arguments: Mapping[str, str], network: str) -> list[str]:
    words = ["build", "--quiet", "--tag", name, "--file", f"{image.folder}/Dockerfile"]
    heeded = image.name_arguments(arguments) | {"REVISION": read_git_revision() or "unknown"}
    for key, value in heeded.items():
        words += ["--build-arg", f"{key}={value}"]
    return [*words, *(["--network", network] if network else []), "."]


def _run_docker(*words: str) -> str:
    docker = shutil.which("docker")
    if docker is None:
        raise UserError("docker: is not installed; on Debian: apt-get install docker.io")
    done = subprocess.run([docker, *words], cwd=require_checkout(), capture_output=True, text=True)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise UserError(f"docker {words[0]} failed (exit code {done.returncode}):\n{tail}")
    return done.stdout.strip()


def _require_built(name: str, image: Image) -> None:
    if not _has_image(name):
        raise UserError(f"{name}: is not built; run `benchmatrix images build {image.name}` with the same options")


def _has_image(name: str) -> bool:
    try:
        return bool(_run_docker("image", "ls", "--quiet", name))
    except UserError as error:
        if "is not installed" in str(error):
            raise
        raise UserError(f"{error}\nis the Docker engine running?") from error


def _read_size(name: str) -> str:
    return f"{int(_run_docker('image', 'inspect', '--format', '{{.Size}}', name)) / 1e6:,.0f} MB"


def _read_digest(name: str) -> str:
    digests = _run_docker("image", "inspect", "--format", '{{join .RepoDigests "\\n"}}', name).splitlines()
    repository = name.rpartition(":")[0]
    return next(digest for digest in digests if digest.startswith(f"{repository}@"))
