"""Run pip as a program, with those of the user's settings alone that say how packages are reached: `... install X`.

A constraint, a target or a format that is meant for another project would decide over this one's packages. It needs
nothing but Python: make installs the tool with it.
"""

import os
import re
import subprocess
import sys
from ast import literal_eval
from collections.abc import Mapping
from pathlib import Path

REACH = re.compile(
    "(extra-)?index-url|no-index|find-links|proxy|(client-)?cert|trusted-host|(no-)?cache-dir|(default-)?timeout|"
    "(resume-)?retries|keyring-provider|use-deprecated|use-feature|compile"
)
"""How pip reaches packages, and whether it compiles them: all other settings are meant for other projects."""


def hide_python_path(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables by which Python finds its environment's packages alone, and none of the user's."""
    kept = {name: value for name, value in variables.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return kept | {"PYTHONNOUSERSITE": "1"}


def keep_reach(python: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables by which pip has the settings in REACH of the user's files and variables, and no other."""
    command = [str(python), "-m", "pip", "config", "list", "--disable-pip-version-check"]
    listed = subprocess.run(command, env=variables, capture_output=True, text=True, check=False).stdout
    settings = re.findall(r"^(global|install|:env:)\.([\w-]+)=(.*)$", listed, re.MULTILINE)
    kept = {name: value for name, value in variables.items() if not name.startswith("PIP_")}
    kept["PIP_CONFIG_FILE"] = os.devnull
    for section in ("global", "install", ":env:"):  # the later goes before
        for found, key, value in settings:
            if found == section and REACH.fullmatch(key):
                kept[f"PIP_{key.upper().replace('-', '_')}"] = literal_eval(value)
    return kept


if __name__ == "__main__":
    variables = keep_reach(Path(sys.executable), hide_python_path(os.environ))
    os.execve(sys.executable, [sys.executable, "-m", "pip", *sys.argv[1:]], variables)
