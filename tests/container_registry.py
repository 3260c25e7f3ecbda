"""A real container registry for tests: Debian's docker-registry on a free port of the loopback device."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from s3_server import find_free_port
from waiting import wait_for


@contextmanager
def serve_registry(folder: Path) -> Iterator[str]:
    """Start a registry without TLS and yield its address; skip the test where the program is not installed."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("no registry to push to: install Debian's docker-registry")
    address = f"127.0.0.1:{find_free_port()}"
    config = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(folder / "registry")}},
        "http": {"addr": address},
    }
    (folder / "config.yml").write_text(yaml.safe_dump(config))
    with (folder / "registry.log").open("wb") as log:
        process = subprocess.Popen([program, "serve", folder / "config.yml"], stdout=log, stderr=log)
        try:
            wait_for(
                lambda: b"listening on" in (folder / "registry.log").read_bytes() or process.poll(), "the registry"
            )
            assert process.poll() is None, (folder / "registry.log").read_text()
            yield address
        finally:
            process.kill()
            process.wait()
