"""Lines in the server's log, with the tenant, pipeline, plugin and id of their request.

    log.info("hashed", texts=3)

In a component the root logger of the standard `logging` module has a `Handler`, so
`logging.getLogger(__name__).info(...)` writes there, too.
"""

from __future__ import annotations

import io
import logging

from .host import log as host_log
from .host import types
from .tracebacks import format_exception

_Level = host_log.Level

__all__ = ["Handler", "Stream", "debug", "error", "info", "trace", "warning"]


def trace(message: str, **fields: object) -> None:
    """Log a message with these fields at level trace."""
    _write(_Level.TRACE, message, fields)


def debug(message: str, **fields: object) -> None:
    """Log a message with these fields at level debug."""
    _write(_Level.DEBUG, message, fields)


def info(message: str, **fields: object) -> None:
    """Log a message with these fields at level info."""
    _write(_Level.INFO, message, fields)


def warning(message: str, **fields: object) -> None:
    """Log a message with these fields at level warn."""
    _write(_Level.WARN, message, fields)


def error(message: str, **fields: object) -> None:
    """Log a message with these fields at level error."""
    _write(_Level.ERROR, message, fields)


#: The streams with a line that has begun and does not end yet.
_begun: list[Stream] = []


def flush() -> None:
    """Log what was printed and does not end a line. The SDK does so at the end of each call."""
    while _begun:
        _begun[-1].flush()


def _write(level: host_log.Level, message: str, fields: dict[str, object]) -> None:
    listed = [types.Field(name, _text(value)) for name, value in fields.items()]
    host_log.write(level, _text(message), listed)


def _text(value: object) -> str:
    """`value` as text that UTF-8 has a form for. Half of a surrogate pair has none."""
    return str(value).encode("utf-8", "replace").decode()


class Handler(logging.Handler):
    """Writes the records of the standard `logging` module.

    Its lines have the fields `logger`, `file` and `line`, and `traceback` if there is one.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            fields: dict[str, object] = {
                "logger": record.name,
                "file": record.pathname,
                "line": record.lineno,
            }
            if record.exc_info and record.exc_info[1]:
                fields["traceback"] = format_exception(record.exc_info[1])
            _write(_level_of(record.levelno), record.getMessage(), fields)
        except Exception as fault:
            _write(_Level.ERROR, f"a log record cannot be written: {fault}", {})


class Stream(io.TextIOBase):
    """A text stream whose lines go to the log: `sys.stdout` and `sys.stderr` of a component."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._level = _Level.WARN if name == "stderr" else _Level.INFO
        self._rest = ""

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Log the lines that are complete. The rest waits for its end, or for `flush`."""
        *lines, rest = (self._rest + text).split("\n")
        self._begin(rest)
        for line in lines:
            _write(self._level, line, {"stream": self.name})
        return len(text)

    def flush(self) -> None:
        """Log a line that is not complete."""
        if self._rest:
            line = self._rest
            self._begin("")
            _write(self._level, line, {"stream": self.name})

    def _begin(self, rest: str) -> None:
        """From now on `rest` is the line that does not end yet."""
        if rest and not self._rest:
            _begun.append(self)
        elif self._rest and not rest:
            _begun.remove(self)
        self._rest = rest


def _level_of(number: int) -> host_log.Level:
    if number >= logging.ERROR:
        return _Level.ERROR
    if number >= logging.WARNING:
        return _Level.WARN
    if number >= logging.INFO:
        return _Level.INFO
    return _Level.DEBUG if number >= logging.DEBUG else _Level.TRACE
