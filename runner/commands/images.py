"""The commands `images list`, `images build`, `images push` and `images sbom`."""

from pathlib import Path
from typing import Annotated

import typer
import yaml

from runner.commands.next_steps import say
from runner.commands.options import CONSOLE
from runner.images.build import build_image, make_profile_values
from runner.images.docker import is_built, read_size_bytes, require_built
from runner.images.names import DEFAULT_BASE, LOCAL_REGISTRY, choose_images, make_arguments, name_image
from runner.images.push import push_images
from runner.terminal_text import echo

OnlyArgument = Annotated[
    list[str] | None,
    typer.Argument(help="Names, with or without flavour: `jax`, `jax:cpu`; default: all CPU images.", metavar="IMAGE"),
]
BaseOption = Annotated[
    str, typer.Option(metavar="IMAGE", help="The base image: a Python 3.11 on Debian 12, by tag or digest.")
]
IndexOption = Annotated[
    str, typer.Option(metavar="URL", help="A package index with PyTorch without CUDA, for the CPU image.")
]
NetworkOption = Annotated[str, typer.Option(metavar="NAME", help="Docker's network for the build, `host` for example.")]


def list_names(
    only: OnlyArgument = None,
    registry: Annotated[str, typer.Option(metavar="REGISTRY", help="What the names begin with.")] = LOCAL_REGISTRY,
    base: BaseOption = DEFAULT_BASE,
    cpu_index: IndexOption = "",
) -> None:
    """Print the names of the images, with the tags of a build with these options."""
    for image in choose_images(only):
        echo(name_image(registry, image, make_arguments(base, cpu_index)))


def build(
    only: OnlyArgument = None,
    base: BaseOption = DEFAULT_BASE,
    cpu_index: IndexOption = "",
    network: NetworkOption = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which images would be built; build none.")] = False,
) -> None:
    """Build images that are not built yet; a tag is a hash of the content."""
    arguments = make_arguments(base, cpu_index)
    for image in choose_images(only):
        name = name_image(LOCAL_REGISTRY, image, arguments)
        if is_built(name):
            CONSOLE.print(f"{name} is there")
            continue
        if dry_run:
            CONSOLE.print(f"{name} would be built", soft_wrap=True)
            continue
        CONSOLE.print(f"building {name}: this takes minutes; Docker's output is shown if it fails", soft_wrap=True)
        build_image(image, name, arguments, network=network)
        CONSOLE.print(f"{name}: {read_size_bytes(name) / 1e6:,.0f} MB")
    if arguments:
        CONSOLE.print("a run finds these images only by a profile that says, beside `registry`:")
        echo(yaml.safe_dump(make_profile_values(arguments), sort_keys=False).rstrip())


def push(
    registry: Annotated[
        str, typer.Argument(metavar="REGISTRY", help="Where a cluster can pull them: HOST/PROJECT/REPOSITORY.")
    ],
    only: OnlyArgument = None,
    base: BaseOption = DEFAULT_BASE,
    cpu_index: IndexOption = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which images would be pushed; push none.")] = False,
) -> None:
    """Push built images to a registry; print the lines for your profile and for the chart's values, by digest."""
    if dry_run:
        for image in choose_images(only):
            CONSOLE.print(f"{name_image(registry, image, make_arguments(base, cpu_index))} would be pushed")
        return
    say(f"pushing {len(choose_images(only))} images to {registry}: the frameworks' have gigabytes")
    pushed = push_images(registry, choose_images(only), make_arguments(base, cpu_index))
    if profile_values := pushed.make_profile_values():
        CONSOLE.print("for your profile, by digest:")
        echo(yaml.safe_dump(profile_values))
    if chart_values := pushed.make_chart_values():
        CONSOLE.print("for the chart's values, by digest:")
        echo(yaml.safe_dump(chart_values, sort_keys=False))


def sbom(
    only: OnlyArgument = None,
    base: BaseOption = DEFAULT_BASE,
    cpu_index: IndexOption = "",
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the files.")] = Path("sbom"),
) -> None:
    """Write a software bill of materials (CycloneDX) of each built image."""
    from collector.files import replace_text
    from runner.images.sbom import describe_image

    for image in choose_images(only):
        name = name_image(LOCAL_REGISTRY, image, make_arguments(base, cpu_index))
        require_built(name, image.name)
        path = output / f"{name.rpartition('/')[2].replace(':', '-')}.cdx.json"
        replace_text(path, describe_image(name))
        CONSOLE.print(str(path), soft_wrap=True)
