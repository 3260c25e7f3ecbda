"""Kubeconfigs of servers that tests start on this machine, and of programs that give the credentials for one."""

import json
from pathlib import Path
from typing import Any

NO_SERVER = "https://127.0.0.1:1"
EXEC = "client.authentication.k8s.io/v1"


def write_kubeconfig(
    path: Path, url: str | None = NO_SERVER, *, context: str = "tests", user: Any = None, **cluster: Any
) -> None:
    """Write a kubeconfig whose one context leads to a server, as the user `me`, who has a token by default."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": "tests", "cluster": {"server": url} | cluster}],
        "contexts": [{"name": context, "context": {"cluster": "tests", "user": "me"}}],
        "users": [{"name": "me", "user": user or {"token": "t"}}],
    }
    path.write_text(json.dumps(config))
