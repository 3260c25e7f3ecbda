"""Say in which recorded settings the two sides of a comparison differ, besides what is compared."""

from collections.abc import Iterable, Mapping

from bench.schema import Environment
from collector.results.frames import Row

SETTINGS: Mapping[str, str] = {
    "memory_format": "layout of images",
    "optimizer": "optimizer",
    "cuda_graph": "use of CUDA graphs",
}
"""The settings that a mode or a precision brings along, by their names in the environment, in words."""
SIDES = ("subject", "reference")
_WORDS: Mapping[object, str] = {True: "yes", False: "no"}


def find_differing_settings(
    pairs: Iterable[Row], environments: Mapping[str, Environment]
) -> dict[str, tuple[str, str]]:
    """Return the SETTINGS in which the sides of a pair differ, with the values of subject and reference.

    `pairs`: rows of `compare_cells`. Of several pairs the first that differs counts; a setting that one side does not
    record is left out. Comparisons of frameworks have no sides here: `collector.libraries` says how these differ.
    """
    found: dict[str, tuple[str, str]] = {}
    for pair in pairs:
        sides = [environments.get(str(pair.get(f"environment_id_{side}"))) for side in SIDES]
        if "framework_subject" in pair or None in sides:
            continue
        for name in SETTINGS:
            first, second = (None if side is None else side.settings.get(name) for side in sides)
            if None not in (first, second) and first != second:
                found.setdefault(name, (_describe(first), _describe(second)))
    return {name: found[name] for name in SETTINGS if name in found}


def describe_differing_settings(pairs: Iterable[Row], environments: Mapping[str, Environment]) -> str:
    """Return as a sentence in which settings the sides of the pairs differ, with the values; empty where in none."""
    found = find_differing_settings(pairs, environments)
    if not found:
        return ""
    texts = [f"{SETTINGS[name]} {subject} / {reference}" for name, (subject, reference) in found.items()]
    return f"The sides differ in settings, too: {'; '.join(texts)}. How much of a ratio that explains is not known."


def _describe(value: object) -> str:
    return _WORDS.get(value, str(value)) if isinstance(value, bool) else str(value)
