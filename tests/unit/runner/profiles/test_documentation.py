"""docs/profiles.md: its table of keys; the profiles that it and other pages show as examples."""

import json
import re
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from profile_files import write
from runner.profiles.loading import load_profile
from runner.profiles.model import Profile
from runner.sources import ROOT


def list_keys(model: type[BaseModel], prefix: str = "") -> dict[str, Any]:
    """Return every key of a profile, `pools.*.node_affinity[][].key` among them, with its default."""
    keys: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        path = f"{prefix}{name}"
        keys[path] = ... if field.is_required() else field.default
        keys |= list_part_keys(field.annotation, path)
    return keys


def list_part_keys(annotation: Any, path: str) -> dict[str, Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return list_keys(annotation, f"{path}.")
    suffixes: dict[Any, str] = {tuple: "[]", dict: ".*"}
    suffix = suffixes.get(get_origin(annotation), "")
    found: dict[str, Any] = {}
    for part in get_args(annotation):
        found |= list_part_keys(part, path + suffix)
    return found


def test_the_documentation_has_every_key_and_its_default() -> None:
    table = (ROOT / "docs/profiles.md").read_text().partition("## Keys")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (?:`([^`]*)`|(needed|the file's name)) \| \S", table, re.MULTILINE)
    documented = {key: ... if words else json.loads(default) for key, default, words in rows}
    keys = list_keys(Profile)
    defaults = {key: value if value is ... else json.loads(json.dumps(value)) for key, value in keys.items()}
    assert documented == {"extends": None} | defaults


def test_every_example_of_the_documentation_is_a_profile(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/profiles.md").read_text(), re.S)
    assert len(blocks) >= 3
    for number, example in enumerate(blocks):
        load_profile(write(tmp_path, example, f"{number}.yaml"))


@pytest.mark.parametrize(("page", "number"), [("kubernetes.md", 5), ("results/reproduce-on-t4.md", 2)])
def test_every_profile_that_another_page_shows_can_be_loaded(page: str, number: int, tmp_path: Path) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.M | re.S)
    examples = [block for block in blocks if "extends: " in block]
    assert len(examples) == number
    for index, example in enumerate(examples):
        # Words in capitals stand for the reader's own.
        load_profile(write(tmp_path, re.sub(r"\b[A-Z]{5,}\b", "own.example", example), f"{index}.yaml"))
