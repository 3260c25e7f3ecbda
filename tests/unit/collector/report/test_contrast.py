"""The heat map's numbers can be read on every shade: WCAG 2.2, 1.4.3, asks for a contrast of 4.5."""

import re

import pytest

from collector.report.html import load_style

LEAST = 4.5
SHADES = [f"{side}{number}" for side in ("up", "down") for number in (1, 2, 3, 4)]
TEXTS = {"1": "ink", "2": "ink", "3": "third", "4": "strong"}


def list_themes() -> list[dict[str, str]]:
    """Return the colours of each `:root` of the style: light, dark, and on paper."""
    blocks = re.findall(r":root \{(.*?)\}", load_style(), flags=re.DOTALL)
    return [dict(re.findall(r"--(\w+): (#\w+)", block)) for block in blocks]


def find_luminance(colour: str) -> float:
    """Return the relative luminance by WCAG's formula of `#rgb` or `#rrggbb`."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def find_contrast(one: str, other: str) -> float:
    low, high = sorted((find_luminance(one), find_luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_wcag() -> None:
    assert find_contrast("#000", "#fff") == pytest.approx(21)
    assert find_contrast("#000000", "#86471d") == pytest.approx(2.9, abs=0.05)  # as an auditor measured it


@pytest.mark.parametrize("theme", [0, 1, 2], ids=["light", "dark", "paper"])
def test_numbers_stand_out_from_every_shade(theme: int) -> None:
    themes = list_themes()
    assert len(themes) == 3
    colours = themes[theme]
    contrasts = {shade: find_contrast(colours[shade], colours[TEXTS[shade[-1]]]) for shade in SHADES}
    assert {shade: contrast for shade, contrast in contrasts.items() if contrast < LEAST} == {}


def test_each_shade_has_the_colour_of_its_text() -> None:
    for sign, side in (("", "up"), ("-", "down")):
        for number, text in TEXTS.items():
            rule = re.search(rf"\.shade{sign}{number} \{{ (.*?) \}}", load_style())
            assert rule is not None
            own = "" if text == "ink" else f" color: var(--{text});"
            assert rule[1] == f"background: var(--{side}{number});{own}"
