"""The tree of a YAML file: every value with the file, line and key where it stands."""

import re
from dataclasses import dataclass

from runner.yaml_files.errors import ErrorKind, YamlError
from runner.yaml_files.wording import quote

Scalar = str | int | float | bool | None
Value = Scalar | list["Node"] | dict[str, "Node"]


@dataclass(frozen=True, kw_only=True)
class Node:
    """One value of a file and where it stands."""

    value: Value
    text: str
    """A scalar as written, without quotes; empty for lists and mappings."""
    is_quoted: bool
    file: str
    """The file's name as shown to the user."""
    line: int
    """Counted from 1: the line of the key in a mapping, of the item in a list."""
    key: str
    """The way to the value from the top, as in `include[0].mode`; empty at the top."""

    def error(self, kind: ErrorKind, message: str, *, key: str | None = None) -> YamlError:
        """Return an error that names file, line and key of this value; `key` replaces its own key."""
        return YamlError(message, kind=kind, file=self.file, line=self.line, key=self.key if key is None else key)

    def find_child(self, part: str | int) -> "Node | None":
        """Return the value under a key or at an index, or None if there is none."""
        if isinstance(self.value, dict) and isinstance(part, str):
            return self.value.get(part)
        if isinstance(self.value, list) and isinstance(part, int) and part < len(self.value):
            return self.value[part]
        return None

    def find_nearest(self, path: str) -> "Node":
        """Return the value at a path such as `a.b[0].c`, or the nearest above it that exists."""
        if isinstance(self.value, list):
            children = {f"[{number}]": child for number, child in enumerate(self.value)}
        elif isinstance(self.value, dict):
            children = {key: child for key, child in self.value.items()}
        else:
            return self
        found = [part for part in children if path.startswith(part) and path[len(part) :][:1] in ("", ".", "[")]
        if not found:
            return self
        part = max(found, key=len)
        return children[part].find_nearest(path[len(part) :].removeprefix("."))


def join_keys(parent: str, name: str) -> str:
    """Return the key path of an entry, its name quoted if it is not a plain word."""
    shown = name if re.fullmatch(r"[\w<-]{1,60}", name) else quote(name)
    return f"{parent}.{shown}" if parent else shown
