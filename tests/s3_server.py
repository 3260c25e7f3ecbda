"""A real S3 server for tests: `rclone serve s3` over a directory, on a free port of the loopback device.

It ignores If-None-Match, keeps no versions, and serves every directory in its root as a bucket.
"""

import atexit
import socket
import subprocess
import sys
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from child_process import start_child
from waiting import wait_for

STOP_DEADLINE_SECONDS = 600.0
"""Only a test that fails takes so long."""
MAX_RESERVED_PORTS = 100
_RESERVED: deque[socket.socket] = deque()


@atexit.register
def _release_ports() -> None:
    for holder in _RESERVED:
        holder.close()


def find_free_port() -> int:
    """Return a port that nothing listens on, and that the kernel gives to nobody else who asks for a free one.

    A socket that does not listen holds it until this process has found MAX_RESERVED_PORTS others. A server can listen
    there meanwhile, and again after a restart, if it sets SO_REUSEADDR; those that are written in Go do.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("", 0))
    _RESERVED.append(holder)
    if len(_RESERVED) > MAX_RESERVED_PORTS:
        _RESERVED.popleft().close()
    port: int = holder.getsockname()[1]
    return port


@dataclass
class S3Server:
    """The server and its one bucket; it can be stopped and started again on the same port with the same objects."""

    root: Path
    host: str = "127.0.0.1"
    bucket: str = "benchmatrix-test"
    access_key: str = "AKIABENCHMATRIXTEST0"
    secret_key: str = "not-a-secret-0123456789-not-a-secret-012"
    port: int = field(default_factory=find_free_port)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def endpoint_url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that lead boto3's chain to this server and to no other credentials of the machine."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": str(self.root / "no-config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(self.root / "no-credentials"),
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_PROXY": "127.0.0.1",
        }

    def start(self) -> None:
        """Start the server unless it runs, and return when it listens."""
        if self.process is not None:
            return
        (self.root / self.bucket).mkdir(parents=True, exist_ok=True)
        rclone = Path(sys.executable).parent / "rclone"
        address = f"{self.host}:{self.port}"
        keys = f"{self.access_key},{self.secret_key}"
        flags = ["--config", "", "--addr", address, "--auth-key", keys]
        with (self.root.parent / "rclone.log").open("ab") as log:
            self.process = start_child([rclone, "serve", "s3", *flags, self.root], stdout=log, stderr=log)
        process = self.process
        wait_for(lambda: self.is_listening() or process.poll() is not None, "rclone")
        assert process.poll() is None, (self.root.parent / "rclone.log").read_text()

    def stop(self) -> None:
        """Kill the server: connections break, objects stay."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(STOP_DEADLINE_SECONDS)
            self.process = None

    def is_listening(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex((self.host, self.port)) == 0
