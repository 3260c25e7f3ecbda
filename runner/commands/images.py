"""The commands `images build` and `images push`."""

from typing import Annotated

import typer

from runner.commands.options import CONSOLE, make_error_console
from runner.images import DEFAULT_BASE, LOCAL_REGISTRY, choose_images, make_arguments, name_image
from runner.terminal import echo

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


def build(
    only: OnlyArgument = None,
    base: BaseOption = DEFAULT_BASE,
    cpu_index: IndexOption = "",
    network: Annotated[
        str, typer.Option(metavar="NAME", help="Docker's network for the build, `host` for example.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the names of the images, which need not be built; build none.")
    ] = False,
) -> None:
    """Build images that are not built yet; a tag is a hash of the content."""
    import yaml

    from runner.images import PROFILE_KEYS, build_image, is_built

    arguments = make_arguments(base, cpu_index)
    for image in choose_images(only):
        name = name_image(LOCAL_REGISTRY, image, arguments)
        if dry_run:
            echo(name)
        elif is_built(name):
            CONSOLE.print(f"{name} is there", soft_wrap=True)
        else:
            CONSOLE.print(f"building {name}: takes minutes; Docker's output is shown if it fails", soft_wrap=True)
            build_image(image, name, arguments, network=network)
    if arguments and not dry_run:
        CONSOLE.print("a run finds these images only by a profile that says, beside `registry`:")
        values = {PROFILE_KEYS[key]: value for key, value in arguments.items()}
        echo(yaml.safe_dump(values, sort_keys=False).rstrip())


def push(
    registry: Annotated[
        str, typer.Argument(metavar="REGISTRY", help="Where a cluster can pull them: HOST/PROJECT/REPOSITORY.")
    ],
    only: OnlyArgument = None,
    base: BaseOption = DEFAULT_BASE,
    cpu_index: IndexOption = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the names there; push none.")] = False,
) -> None:
    """Push built images to a registry; print the lines for your profile and for the chart's values, by digest."""
    import yaml

    from runner.images import push_images

    images, arguments = choose_images(only), make_arguments(base, cpu_index)
    if dry_run:
        for image in images:
            echo(name_image(registry, image, arguments))
        return
    make_error_console().print(f"pushing {len(images)} images to {registry}: the frameworks' have gigabytes")
    for place, values in zip(
        ("your profile", "the chart's values"), push_images(registry, images, arguments), strict=True
    ):
        if values:
            CONSOLE.print(f"for {place}, by digest:")
            echo(yaml.safe_dump(values, sort_keys=False))
