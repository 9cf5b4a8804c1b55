"""What a plugin's functions need of files: a call has none, so it is looked for when the plugin is
loaded.

These are the modules that functions import, and the encodings whose names stand in the sources.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from encodings.aliases import aliases
from opcode import opmap
from types import CodeType
from typing import Any

#: Functions of Python that import a module when they are called.
_IMPORTING = {b"strptime": "_strptime", b"ZoneInfo": "importlib.resources"}

#: Names of encodings. Two are no others' aliases.
_ENCODINGS = {*aliases, *aliases.values(), "idna", "punycode"}

_TEXT = re.compile(rb"""["']([A-Za-z][\w.-]{2,24})["']""")

_IMPORT_NAME, _EXTENDED_ARG = opmap["IMPORT_NAME"], opmap["EXTENDED_ARG"]
_LOAD_CONST, _LOAD_SMALL_INT = opmap["LOAD_CONST"], opmap.get("LOAD_SMALL_INT")

#: The modules' dictionaries and code.
_modules: list[tuple[dict[str, Any], CodeType]] = []
_encodings: set[str] = set()
_others: set[str] = set()


def note(module: dict[str, Any], code: CodeType, source: bytes) -> None:
    """A file of the plugin's sources begins to run."""
    _modules.append((module, code))
    _others.update(name for function, name in _IMPORTING.items() if function in source)
    for text in _TEXT.findall(source):
        name = text.decode()
        if name.lower().replace("-", "_").replace(".", "_") in _ENCODINGS:
            _encodings.add(name)


def prepare() -> None:
    """Import what was found. What cannot be imported is left to the call, whose error says why."""
    for name in sorted(_others):
        _import(name, {}, None, 0)
    for name in sorted(_encodings):
        try:
            codecs.lookup(name)
        except Exception:
            pass
    # An import may run further files.
    while _modules:
        module, code = _modules.pop()
        for name, names, level in sorted(set(_imports_of(code)), key=repr):
            _import(name, module, names, level)
    _others.clear()
    _encodings.clear()


def _import(name: str, module: dict[str, Any], names: tuple[str, ...] | None, level: int) -> None:
    try:
        __import__(name, module, None, names or (), level)
    # A script that a function imports ends itself, mostly.
    except (Exception, SystemExit):
        pass


def _imports_of(code: CodeType) -> Iterator[tuple[str, tuple[str, ...] | None, int]]:
    """What the functions in `code` import: a module, names of it, and the level of a relative one.

    Looking for the instruction among the bytes is many times faster than a syntax tree.
    """
    for inner in code.co_consts:
        if not isinstance(inner, CodeType):
            continue
        raw = inner.co_code
        operations = raw[::2]
        at = operations.find(_IMPORT_NAME)
        while at >= 0:
            name, before = _argument(raw, at)
            names, before = _constant(inner, before)
            level, _ = _constant(inner, before)
            if name < len(inner.co_names) and isinstance(level, int):
                known = isinstance(names, tuple) and all(isinstance(one, str) for one in names)
                yield inner.co_names[name], names if known else None, level
            at = operations.find(_IMPORT_NAME, at + 1)
        yield from _imports_of(inner)


def _argument(raw: bytes, at: int) -> tuple[int, int]:
    """The argument of the instruction `at`, and where the one before it is."""
    argument, shift, before = raw[2 * at + 1], 8, at - 1
    while before >= 0 and raw[2 * before] == _EXTENDED_ARG:
        argument |= raw[2 * before + 1] << shift
        shift, before = shift + 8, before - 1
    return argument, before


def _constant(code: CodeType, at: int) -> tuple[object, int]:
    """The constant that the instruction `at` loads, and where the one before it is."""
    if at < 0:
        return None, at
    raw = code.co_code
    argument, before = _argument(raw, at)
    if raw[2 * at] == _LOAD_SMALL_INT:
        return argument, before
    if raw[2 * at] == _LOAD_CONST and argument < len(code.co_consts):
        return code.co_consts[argument], before
    return None, before
