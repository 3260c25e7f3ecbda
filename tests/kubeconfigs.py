"""Kubeconfigs of servers that tests start on this machine."""

import json
from pathlib import Path


def write_kubeconfig(path: Path, url: str) -> None:
    """Write a kubeconfig whose one context, `tests`, leads to a server."""
    config = {
        "current-context": "tests",
        "clusters": [{"name": "tests", "cluster": {"server": url}}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
        "users": [{"name": "tests", "user": {"token": "t"}}],
    }
    path.write_text(json.dumps(config))
