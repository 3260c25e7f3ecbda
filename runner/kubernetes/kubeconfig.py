"""Check the files of the kubeconfig before the official client reads them: it takes whatever YAML makes of them."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from bench.errors import UserError
from bench.foreign_files import FileProblem, ForeignFileError, read_foreign_file

# Certificates are in it: 10 KB a cluster. The official client takes ten seconds for each MB.
MAX_KUBECONFIG_BYTES = 4 * 2**20
# The deepest value of a kubeconfig, a variable of an exec plugin, is the eighth level; extensions may be deeper.
MAX_DEPTH = 50
CREDENTIAL_FILES = {
    "users": ("tokenFile", "client-certificate", "client-key"),
    "clusters": ("certificate-authority",),
}
MAX_CREDENTIAL_BYTES = 4 * 2**20
"""Of a token or of certificates: all authorities that a system trusts have 0.2 MB."""
# What each list of the file holds besides the name: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
LISTS = {"clusters": "cluster", "contexts": "context", "users": "user"}

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the fast one where it is there


class DoubleKeyError(ValueError):
    """A key stands twice in a mapping; the message says where, in words."""


def find_kubeconfig() -> str:
    """Return the kubeconfig that the official client takes by default; it reads KUBECONFIG only when imported."""
    return os.environ.get("KUBECONFIG", "~/.kube/config")


def list_kubeconfigs() -> list[Path]:
    """Return the files that the kubeconfig is read from."""
    # expanduser of os.path leaves a user that does not exist as it is
    return [Path(os.path.expanduser(name)) for name in filter(None, find_kubeconfig().split(os.pathsep))]


def read_kubeconfig(path: Path) -> Any:
    """Return what one file of the kubeconfig holds, whatever that is.

    Raises ForeignFileError where it cannot be opened or is too large, UnicodeDecodeError where it is no text,
    DoubleKeyError where a key stands twice, and YAMLError, ValueError or RecursionError where it is no YAML.
    """
    text = read_foreign_file(path, max_bytes=MAX_KUBECONFIG_BYTES).decode()
    _check_depth(text)
    _check_keys(yaml.compose(text, Loader=_LOADER))
    return yaml.safe_load(text)


def check_kubeconfig(option: str, context: str | None = None) -> None:
    """Raise UserError, which names the file and the key, where a file of the kubeconfig is none.

    `option`: what asked for it, for the message. `context`: whose files are to be used as well. A file that is not
    there is left to the client: it may read others.
    """
    documents = []
    for path in list_kubeconfigs():
        try:
            document = read_kubeconfig(path)
            documents.append((path, document or {}))
            problem = _find_problem(document)
        except ForeignFileError as error:
            problem = "" if error.problem == FileProblem.MISSING else str(error)
        except UnicodeDecodeError:
            problem = "is not UTF-8 text"
        except DoubleKeyError as error:
            problem = str(error)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            problem = "is no YAML" + (f", see line {mark.line + 1}" if mark else "")
        if problem:
            raise UserError(f"{option}: {path}: {problem}; set KUBECONFIG, or leave --on out to run here")
    if problem := _find_problem_of_files(documents, context):
        raise UserError(f"{option}: {problem}; have it name a file")


def _find_problem_of_files(documents: Sequence[tuple[Path, dict[str, Any]]], context: str | None) -> str:
    """Return in words which file of a context's credentials would never end or is none; empty where none would.

    The client opens them without a look. One that is not there is left to it, as it may have no use for that one.
    """
    contexts = [entry for _, document in documents for entry in document.get("contexts") or ()]
    used = next((entry.get("context") or {} for entry in contexts if entry["name"] == context), {})
    for path, document in documents:
        for key, fields in CREDENTIAL_FILES.items():
            inner = LISTS[key]
            entries = [entry for entry in document.get(key) or () if entry["name"] == used.get(inner)]
            for field in fields if entries else ():
                name = (entries[0].get(inner) or {}).get(field)
                try:
                    if name and isinstance(name, str):
                        read_foreign_file(path.parent / name, max_bytes=MAX_CREDENTIAL_BYTES)
                except ForeignFileError as error:
                    if error.problem in (FileProblem.NOT_REGULAR, FileProblem.DIRECTORY, FileProblem.TOO_LARGE):
                        return f"{path}: {inner} `{used[inner]}`: {field}: {name}: {error}"
    return ""


def _check_depth(text: str) -> None:
    """Raise YAMLError where values are nested too deep: PyYAML's time grows with the square of the depth."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise yaml.YAMLError("nested too deep")


def _check_keys(root: yaml.Node | None) -> None:
    """Raise DoubleKeyError where a key stands twice in a mapping: PyYAML takes the last one."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in seen:  # aliases share what they name
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, value in node.value:
                waiting.append(value)
                if isinstance(key, yaml.ScalarNode):
                    if key.value in keys:
                        place = f"line {key.start_mark.line + 1}"
                        raise DoubleKeyError(f"{place}: the key {key.value[:100]!r} stands twice; keep one")
                    keys.add(key.value)


def _find_problem(document: Any) -> str:
    """Return in words what is not as in a kubeconfig; empty where nothing is. An empty file is the client's to name."""
    if document is None:
        return ""
    if not isinstance(document, dict):
        return "is no kubeconfig: expected keys such as 'clusters' and 'contexts'"
    if not isinstance(document.get("current-context"), str | None):
        return "current-context: expected the name of a context"
    for key, inner in LISTS.items():
        entries = document.get(key)
        if not isinstance(entries, list | None):  # the client takes 0 and false for what they are
            return f"{key}: expected a list"
        for index, entry in enumerate(entries or ()):
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                return f"{key}[{index}]: expected a mapping with a 'name'"
            if not isinstance(entry.get(inner), dict | None):
                return f"{key}[{index}].{inner}: expected a mapping"
            if key == "clusters" and (reason := find_server_problem((entry.get(inner) or {}).get("server"))):
                return f"{key}[{index}].{inner}.server: {reason}"
    return ""


def find_server_problem(server: Any) -> str:
    """Return in words why this cannot be the URL of an API server; empty where it can. It is not shown: it may hold
    a password."""
    if server is None:  # of a cluster that is not used, or the client says it
        return ""
    try:
        parts = urlsplit(str(server))
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
        if has_host and ":" not in str(parts.hostname):  # else an address of IPv6
            str(parts.hostname).encode("idna")  # as a resolver needs it: no empty label, none above 63 characters
    except ValueError:
        has_host = False
    has_host = has_host and not re.search(r"[\s\x00-\x1f\x7f]", str(server))
    if not isinstance(server, str) or not has_host or parts.scheme not in ("http", "https"):
        return "is no URL of a server, expected https://HOST:PORT"
    return ""
