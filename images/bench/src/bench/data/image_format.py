"""Checks whether a JPEG or PNG file is whole, without decoding it."""

import struct
import zlib
from pathlib import Path

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png")

JPEG_START = b"\xff\xd8\xff"
JPEG_SCAN = b"\xff\xda"
JPEG_END = b"\xff\xd9"
PNG_START = b"\x89PNG\r\n\x1a\n"


def find_damage(path: Path) -> str | None:
    """Return in a few words why the file is no whole JPEG or PNG image; None where nothing is wrong.

    A PNG file's checksums are computed. A JPEG file has none: it must begin and end as one; damage between is met when
    the image is decoded. OSError where the file cannot be read.
    """
    content = path.read_bytes()
    if content.startswith(PNG_START):
        return _find_damage_of_png(content)
    if content.startswith(JPEG_START):
        # Within a scan every FF is followed by 00 or a restart marker: the end marker cannot be a part of it.
        is_whole = content.rfind(JPEG_END) > content.rfind(JPEG_SCAN) >= 0
        return None if is_whole else "is a JPEG file that breaks off"
    return "is neither a JPEG nor a PNG file" if content else "is empty"


def _find_damage_of_png(content: bytes) -> str | None:
    """Walk the chunks: length, type, data, CRC-32 of type and data (PNG specification, section 5.3)."""
    position = len(PNG_START)
    while position + 8 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, position)
        end = position + 8 + length
        if end + 4 > len(content):
            break
        if zlib.crc32(content[position + 4 : end]) != struct.unpack_from(">I", content, end)[0]:
            return "is a PNG file with a wrong checksum"
        if kind == b"IEND":
            return None
        position = end + 4
    return "is a PNG file that breaks off"
