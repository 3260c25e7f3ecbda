"""Profile files of tests: write one, and catch the error in it."""

import re
from pathlib import Path

import pytest
import yaml

from runner.profiles.loading import load_profile
from runner.sources import ROOT
from runner.yaml_input import YamlError


def write(folder: Path, text: str, name: str = "mine.yaml") -> str:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return str(folder / name)


def list_gpu_words(name: str) -> list[str]:
    """Return the words that a built-in profile, or the one that it extends, has for GPUs."""
    content = yaml.safe_load((ROOT / "runner/profiles" / f"{name.removesuffix('.yaml')}.yaml").read_text())
    base = content.get("extends")
    return [*(list_gpu_words(base) if base else ()), *content.get("gpu_kinds", {})]


def catch_error(folder: Path, text: str) -> YamlError:
    """Return the error of a profile with this text, its message checked to be in our own words."""
    path = write(folder, text)
    with pytest.raises(YamlError) as caught:
        load_profile(path)
    message = str(caught.value)
    assert "\n" not in message
    assert not re.search(r"pydantic|validation error|\[type=|pattern|Input should|regex", message)
    return caught.value
