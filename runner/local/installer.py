"""Install packages with uv, or uv itself with pip: as a program, `installer.py install --no-deps -e FOLDER`.

Of the user's settings for pip and uv those alone hold that say how packages are reached: a constraint, a target or a
format that is meant for another project would decide over this one's packages. It needs nothing but Python, as make
installs the tool with it.
"""

import os
import sys
from collections.abc import Mapping
from configparser import Error, RawConfigParser
from importlib.util import find_spec
from math import ceil
from pathlib import Path

REACH = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
    "retries": "UV_HTTP_RETRIES",
    "no-cache-dir": "UV_NO_CACHE",
}
"""How packages are reached: pip's settings, and what uv calls them."""
OTHERS = ("timeout", "default-timeout", "keyring-provider", "no-index")
"""What uv takes in another form."""
KEPT = (
    *REACH.values(),
    *("UV_HTTP_TIMEOUT", "UV_KEYRING_PROVIDER", "UV_CACHE_DIR", "UV_COMPILE_BYTECODE", "UV_INDEX_", "UV_LINK_MODE"),
    "UV_OFFLINE",
)
"""How variables of uv begin that hold: with UV_INDEX_ those of an index's login."""


def hide_python_path(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables by which Python finds its environment's packages alone, and none of the user's."""
    kept = {name: value for name, value in variables.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return kept | {"PYTHONNOUSERSITE": "1"}


def read_pip_settings(variables: Mapping[str, str]) -> dict[str, str]:
    """Return those of pip's settings, from its files and from `variables`, that say how packages are reached.

    Raise ValueError if a file is not one that pip can read.
    """
    home, given = Path(os.path.expanduser("~")), variables.get("PIP_CONFIG_FILE", "")
    own = (home / ".pip", Path(variables.get("XDG_CONFIG_HOME", home / ".config")) / "pip", Path(sys.prefix))
    folders = () if given == os.devnull else (Path("/etc/xdg/pip"), Path("/etc"), *own)
    files = RawConfigParser()
    for file in (*(str(folder / "pip.conf") for folder in folders), given):
        try:
            files.read(file)
        except (Error, UnicodeDecodeError):  # whose text has the line, and with it a password
            raise ValueError(f"{file}: is no file of settings as pip reads it; mend it") from None
    settings = dict[str, str]()
    for section in ("global", "install"):  # the later goes before
        if files.has_section(section):
            settings |= files.items(section)
    settings |= {name.removeprefix("PIP_"): value for name, value in variables.items() if name.startswith("PIP_")}
    known = {name.lower().replace("_", "-"): value for name, value in settings.items() if value}
    return {name: value for name, value in known.items() if name in (*REACH, *OTHERS)}


def choose_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables by which pip and uv have the user's settings in REACH, and no other; errors as above."""
    settings = read_pip_settings(variables)
    kept = {
        name: value
        for name, value in variables.items()
        if not name.startswith(("PIP_", "UV_")) or name.startswith(KEPT)
    }
    kept |= {"UV_NO_CONFIG": "1", "UV_SYSTEM_CERTS": "1", "UV_INDEX_STRATEGY": "unsafe-best-match"}  # as pip does
    kept |= {"UV_PYTHON_DOWNLOADS": "never", "PIP_CONFIG_FILE": os.devnull, "PIP_ROOT_USER_ACTION": "ignore"}
    kept |= {f"PIP_{name.upper().replace('-', '_')}": value for name, value in settings.items()}
    if authorities := variables.get("REQUESTS_CA_BUNDLE"):
        kept.setdefault("SSL_CERT_FILE", authorities)
    for name, value in settings.items():
        if name in REACH and REACH[name] not in variables:
            kept[REACH[name]] = ("," if name == "find-links" else " ").join(value.split())
    if seconds := settings.get("timeout", settings.get("default-timeout")):
        kept.setdefault("UV_HTTP_TIMEOUT", str(ceil(float(seconds))))
    if settings.get("keyring-provider", "auto") in ("import", "subprocess"):  # uv knows the latter alone
        kept.setdefault("UV_KEYRING_PROVIDER", "subprocess")
    return kept


def list_arguments(python: str | Path, variables: Mapping[str, str]) -> list[str]:
    """Return the arguments by which uv, with `variables` of choose_variables, works in an environment."""
    from uv import find_uv_bin  # here: the program installs it

    return [
        find_uv_bin(),
        *("pip", "install", "--python", str(python)),
        *(["--no-index"] if variables.get("PIP_NO_INDEX", "0").lower() not in ("0", "false", "no") else []),
    ]


if __name__ == "__main__":
    try:
        variables = choose_variables(hide_python_path(os.environ))
    except ValueError as error:
        sys.exit(f"error: pip's settings: {error}")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    command = [*list_arguments(sys.executable, variables), "-q"] if find_spec("uv") else pip
    os.execve(command[0], [*command, *sys.argv[1:]], variables)
