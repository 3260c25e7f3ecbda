"""A real container registry for tests: Debian's docker-registry on a free port of the loopback device."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from s3_server import find_free_port

START_DEADLINE_SECONDS = 120.0
"""Only a test that fails takes so long."""


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
            deadline = time.monotonic() + START_DEADLINE_SECONDS
            while b"listening on" not in (folder / "registry.log").read_bytes():
                assert process.poll() is None, (folder / "registry.log").read_text()
                assert time.monotonic() < deadline, "the registry does not listen"
                time.sleep(0.05)
            yield address
        finally:
            process.kill()
            process.wait()
