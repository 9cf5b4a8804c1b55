"""The interface `log`. Lines are kept for the tests that capture them, else printed to stderr."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum

from .types import Field


class Level(Enum):
    TRACE = 0
    DEBUG = 1
    INFO = 2
    WARN = 3
    ERROR = 4


@dataclass(frozen=True)
class Line:
    """One line of the log. `level` is its name in lower case, as in "warn"."""

    level: str
    message: str
    fields: dict[str, str]


#: One list for each test that captures, the innermost last.
captures: list[list[Line]] = []


def write(level: Level, message: str, fields: list[Field]) -> None:
    line = Line(level.name.lower(), message, {field.name: field.value for field in fields})
    if captures:
        captures[-1].append(line)
        return
    shown = " ".join(f"{name}={value!r}" for name, value in line.fields.items())
    print(f"{level.name:5} {message} {shown}".rstrip(), file=sys.stderr)
