"""The profiles that come with the tool, by name."""

from pathlib import Path

PROFILE_FOLDER = Path(__file__).parent
BUILTIN_PROFILES = tuple(sorted(path.stem for path in PROFILE_FOLDER.glob("[a-z]*.yaml")))
