"""Base64 and data URLs, with the host's rules and texts."""

from __future__ import annotations

import binascii
import re

_SPACE = re.compile("[ \\t\\r\\n]")
_TEXT = re.compile("([A-Za-z0-9+/_-]*)(=*)")


def decode(text: str) -> bytes:
    """The bytes that `text` stands for. Raises `ValueError`, which says what is wrong."""
    start = _start_of_data(text)
    data = _SPACE.sub("", text[start:])
    digits, padding = _TEXT.match(data).groups()  # type: ignore[union-attr]
    over = len(digits) % 4
    if over == 1 and len(digits) == len(data):
        raise ValueError("base64 ends within a group of four characters")
    padding_max = 4 - over if over >= 2 else 0
    if len(digits) + min(len(padding), padding_max) < len(data):
        raise ValueError(_unexpected(text, start, len(digits) + min(len(padding), padding_max)))
    digits = digits.replace("-", "+").replace("_", "/")
    return binascii.a2b_base64(digits + "=" * (-len(digits) % 4))


def _start_of_data(text: str) -> int:
    """Where the data of a data URL begin; 0 in other texts."""
    if text[:5].lower() != "data:":
        return 0
    comma = text.find(",")
    if comma < 0:
        raise ValueError("a data URL without a comma")
    if text[5:comma].split(";")[-1].strip().lower() != "base64":
        raise ValueError('a data URL whose data are not in base64: it has no ";base64"')
    return comma + 1


def _unexpected(text: str, start: int, count: int) -> str:
    """The text about the character behind `count` others, white space apart."""
    at = start
    while text[at] in " \t\r\n" or count > 0:
        count -= text[at] not in " \t\r\n"
        at += 1
    after = " after its end" if "=" in text[start:at] else ""
    return f"base64 has {text[at]!r} at position {len(text[:at].encode())}{after}"
