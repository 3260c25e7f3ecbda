"""Removes what steers a terminal, an editor or a browser from texts in files: hosts and errors can have any text.

ESC moves a terminal's cursor and U+202E shows what follows backwards, so that a file says something else to its reader
than to a program. Neither has a place in a text of ours: what a result holds is in its JSON, with escapes.
"""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# The controls of ASCII and Latin-1 but tab and line feed; the marks that change the direction of a text
# (https://www.unicode.org/reports/tr9/, "Directional Formatting Characters"); half characters, which UTF-8 has none of.
_STEERING = {
    code: REPLACEMENT
    for code in (
        *(code for code in range(0x20) if code not in (0x09, 0x0A)),
        *range(0x7F, 0xA0),
        *(0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
        *range(0xD800, 0xE000),
    )
}


def replace_steering(text: str) -> str:
    """Return a text, of any number of lines, with U+FFFD in the place of each character that steers."""
    return text if text.isprintable() else text.translate(_STEERING)


def escape_markdown(text: str) -> str:
    """Return one line of `text` in which nothing is read as markup, nor steers a terminal."""
    escaped = "".join(f"\\{character}" if character in "\\`*_[]<>|#" else character for character in text)
    return replace_steering(" ".join(escaped.split()))
