"""Kubeconfigs of servers that tests start on this machine, and of programs that give the credentials for one."""

import json
from pathlib import Path

NO_SERVER = "https://127.0.0.1:1"


def write_kubeconfig(
    path: Path, url: str = NO_SERVER, *, context: str = "tests", plugin: str | Path | None = None
) -> None:
    """Write a kubeconfig whose one context leads to a server, as the user `me`.

    `plugin`: the program that gives the user's credentials; None: there is a token.
    """
    call = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": "tests", "cluster": {"server": url}}],
        "contexts": [{"name": context, "context": {"cluster": "tests", "user": "me"}}],
        "users": [{"name": "me", "user": {"token": "t"} if plugin is None else {"exec": call}}],
    }
    path.write_text(json.dumps(config))
