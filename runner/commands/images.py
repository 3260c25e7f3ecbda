"""The commands `images list`, `images build`, `images push` and `images sbom`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from runner.commands.next_steps import say
from runner.commands.options import CONSOLE, JsonOption, make_error_console
from runner.images.names import DEFAULT_BASE, LOCAL_REGISTRY, ImageSpec, choose_images, make_arguments, name_image
from runner.terminal_text import echo

if TYPE_CHECKING:  # help and completion need no more than the options
    from runner.commands.change_documents import ImageDocument, ImageOutcome
    from runner.images.push import PushedImages

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
    as_json: JsonOption = False,
) -> None:
    """Print the names of the images, with the tags of a build with these options."""
    names = {image: name_image(registry, image, make_arguments(base, cpu_index)) for image in choose_images(only)}
    if as_json:
        _print_document([_describe(image, name, "named") for image, name in names.items()])
        return
    for name in names.values():
        echo(name)


def build(
    only: OnlyArgument = None,
    base: BaseOption = DEFAULT_BASE,
    cpu_index: IndexOption = "",
    network: NetworkOption = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which images would be built; build none.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Build images that are not built yet; a tag is a hash of the content."""
    import yaml

    from runner.images.build import make_profile_values

    arguments = make_arguments(base, cpu_index)
    console = make_error_console() if as_json else CONSOLE
    found = [
        _build(image, arguments, network=network, is_dry_run=dry_run, console=console) for image in choose_images(only)
    ]
    if as_json:
        _print_document(found, profile_values=make_profile_values(arguments))
    elif arguments:
        CONSOLE.print("a run finds these images only by a profile that says, beside `registry`:")
        echo(yaml.safe_dump(make_profile_values(arguments), sort_keys=False).rstrip())


def _build(
    image: ImageSpec, arguments: Mapping[str, str], *, network: str, is_dry_run: bool, console: Console
) -> "ImageDocument":
    """Build an image that is not built yet, unless this is a dry run; say so, and return what became of it."""
    from runner.images.build import build_image
    from runner.images.docker import is_built, read_size_bytes

    name = name_image(LOCAL_REGISTRY, image, arguments)
    if is_built(name):
        console.print(f"{name} is there")
        return _describe(image, name, "already built")
    if is_dry_run:
        console.print(f"{name} would be built", soft_wrap=True)
        return _describe(image, name, "not built")
    console.print(f"building {name}: this takes minutes; Docker's output is shown if it fails", soft_wrap=True)
    build_image(image, name, arguments, network=network)
    num_bytes = read_size_bytes(name)
    console.print(f"{name}: {num_bytes / 1e6:,.0f} MB")
    return _describe(image, name, "built", num_bytes=num_bytes)


def push(
    registry: Annotated[
        str, typer.Argument(metavar="REGISTRY", help="Where a cluster can pull them: HOST/PROJECT/REPOSITORY.")
    ],
    only: OnlyArgument = None,
    base: BaseOption = DEFAULT_BASE,
    cpu_index: IndexOption = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which images would be pushed; push none.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Push built images to a registry; print the lines for your profile and for the chart's values, by digest."""
    from runner.images.push import push_images

    images, arguments = choose_images(only), make_arguments(base, cpu_index)
    names = {image: name_image(registry, image, arguments) for image in images}
    if dry_run:
        if as_json:
            _print_document([_describe(image, name, "not pushed") for image, name in names.items()])
            return
        for name in names.values():
            CONSOLE.print(f"{name} would be pushed")
        return
    say(f"pushing {len(images)} images to {registry}: the frameworks' have gigabytes")
    pushed = push_images(registry, images, arguments)
    if as_json:
        _print_document(
            [
                _describe(image, name, "pushed", digest_reference=pushed.find_reference(image))
                for image, name in names.items()
            ],
            profile_values=pushed.make_profile_values(),
            chart_values=pushed.make_chart_values(),
        )
        return
    _print_pushed(pushed)


def _print_pushed(pushed: "PushedImages") -> None:
    import yaml

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
    as_json: JsonOption = False,
) -> None:
    """Write a software bill of materials (CycloneDX) of each built image."""
    from collector.files import replace_text
    from runner.images.docker import require_built
    from runner.images.sbom import describe_image

    found = []
    for image in choose_images(only):
        name = name_image(LOCAL_REGISTRY, image, make_arguments(base, cpu_index))
        require_built(name, image.name)
        path = output / f"{name.rpartition('/')[2].replace(':', '-')}.cdx.json"
        replace_text(path, describe_image(name))
        found.append(_describe(image, name, "described", file=str(path)))
        if not as_json:
            CONSOLE.print(str(path), soft_wrap=True)
    if as_json:
        _print_document(found)


def _describe(image: ImageSpec, reference: str, outcome: "ImageOutcome", **details: Any) -> "ImageDocument":
    from runner.commands.change_documents import ImageDocument

    name = image.name if image.flavour is None else f"{image.name}:{image.flavour}"
    return ImageDocument(image=name, reference=reference, outcome=outcome, **details)


def _print_document(
    images: "Sequence[ImageDocument]",
    *,
    profile_values: Mapping[str, Any] | None = None,
    chart_values: Mapping[str, Any] | None = None,
) -> None:
    from runner.commands.change_documents import ImagesDocument

    document = ImagesDocument(
        images=tuple(images), profile_values=dict(profile_values or {}), chart_values=dict(chart_values or {})
    )
    echo(document.model_dump_json())
