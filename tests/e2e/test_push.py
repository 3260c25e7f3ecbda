"""`benchmatrix images push` to a real registry: what it prints leads back to the image."""

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from real_cluster import PROGRAM, ROOT

from chart import NEEDED, find_pod, render
from s3_server import find_free_port

START_DEADLINE_SECONDS = 20.0


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """A real registry on the loopback device, to which Docker talks without TLS."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("no registry to push to: install Debian's docker-registry")
    address = f"127.0.0.1:{find_free_port()}"
    config = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(tmp_path / "registry")}},
        "http": {"addr": address},
    }
    (tmp_path / "config.yml").write_text(yaml.safe_dump(config))
    with (tmp_path / "registry.log").open("wb") as log:
        process = subprocess.Popen([program, "serve", tmp_path / "config.yml"], stdout=log, stderr=log)
        deadline = time.monotonic() + START_DEADLINE_SECONDS
        while b"listening on" not in (tmp_path / "registry.log").read_bytes():
            assert process.poll() is None, (tmp_path / "registry.log").read_text()
            assert time.monotonic() < deadline, "the registry does not listen"
            time.sleep(0.05)
        yield address
        process.kill()
        process.wait()


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
