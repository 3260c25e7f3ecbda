"""Profile files of tests: write one, and catch the error in it."""

import re
from pathlib import Path

import pytest

from runner.profiles.loading import load_profile
from runner.yaml_files.errors import YamlError


def write(folder: Path, text: str, name: str = "mine.yaml") -> str:
    """Write a profile and return its path."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return str(folder / name)


def catch_error(folder: Path, text: str) -> YamlError:
    """Return the error of a profile with this text, its message checked to be in our own words."""
    path = write(folder, text)
    with pytest.raises(YamlError) as caught:
        load_profile(path)
    message = str(caught.value)
    assert "\n" not in message
    assert not re.search(r"pydantic|validation error|\[type=|pattern|Input should|regex", message)
    return caught.value
