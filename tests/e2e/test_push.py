"""`benchmatrix images push` to a real registry: what it prints leads back to the image."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from real_cluster import PROGRAM, ROOT

from chart import NEEDED, find_pod, render
from container_registry import serve_registry


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """A real registry on the loopback device, to which Docker talks without TLS."""
    with serve_registry(tmp_path) as address:
        yield address


def test_the_lines_that_push_prints_lead_back_to_the_images(
    docker: str, build_image: Callable[[str], str], registry: str, build_options: list[str]
) -> None:
    built = {name: build_image(name) for name in ("control", "jax:cpu")}
    words = [*PROGRAM, "images", "push", f"{registry}/team", *built, *without_network(build_options)]

    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stderr
    _, profile, values = re.split("for .*, by digest:\n", done.stdout)
    lines = yaml.safe_load(values)
    assert yaml.safe_load(profile) == lines["profile"]
    reference = find_pod(render(NEEDED | {"image": lines["image"]}))["spec"]["containers"][0]["image"]
    for name, pushed in (("control", reference), ("jax:cpu", lines["profile"]["images"]["jax"]["cpu"])):
        assert pushed.startswith(f"{registry}/team/{name.partition(':')[0]}@sha256:")
        subprocess.run([docker, "pull", "--quiet", pushed], check=True, capture_output=True)
        ids = [
            subprocess.run(
                [docker, "image", "inspect", "--format", "{{.Id}}", image], check=True, capture_output=True
            ).stdout
            for image in (pushed, built[name])
        ]
        assert ids[0] == ids[1]
        subprocess.run([docker, "image", "rm", pushed], check=True, capture_output=True)


def without_network(options: list[str]) -> list[str]:
    """Return options of a build that `push` knows too."""
    if "--network" in options:
        index = options.index("--network")
        return options[:index] + options[index + 2 :]
    return options
