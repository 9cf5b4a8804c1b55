"""Tracebacks as text, without access to files.

The standard `traceback` module looks at the source files when it formats. A component has none, and
the server's runtime keeps the text of the plugin's own.
"""

from __future__ import annotations

from itertools import groupby
from types import CodeType, TracebackType

#: The text of source files by their names, as far as it is known.
sources: dict[str, str] = {}

_SDK = __file__.removesuffix("tracebacks.py")

#: What the names of further files begin with that are not the author's, in the server's runtime.
others: tuple[str, ...] = ()

# The host cuts the value of a log line's field at 8 KiB. The end says most: the innermost frames
# and the message.
_BYTES_MAX = 7 << 10
_TEXT_MAX = 1 << 10


def format_exception(error: BaseException) -> str:
    """The traceback of `error` and of its causes, as Python prints it.

    The source lines are those of files whose text is known. The beginning of a long one is cut.
    """
    shown: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        shown.append(_format_one(current))
        if current.__cause__ is not None:
            between = "The above exception was the direct cause of the following exception:"
            current = current.__cause__
        elif current.__context__ is not None and not current.__suppress_context__:
            between = "During handling of the above exception, another exception occurred:"
            current = current.__context__
        else:
            break
        shown.append(f"\n{between}\n")
    whole = "\n".join(reversed(shown)).encode("utf-8", "replace")
    if len(whole) <= _BYTES_MAX:
        return whole.decode()
    _, _, end = whole[-_BYTES_MAX:].partition(b"\n")
    return f"[cut]\n{end.decode('utf-8', 'ignore')}"


def describe(error: BaseException) -> str:
    """The type and the text of `error` in one line."""
    text = _text(error)
    name = type(error).__qualname__
    return f"{name}: {text}" if text else name


def place(error: BaseException, call: object = None) -> tuple[str, int]:
    """File and line of the plugin in which `error` arose; ("", 0) if they are not known.

    If the SDK or Python's library raised it, they are those of the call to that, or else of the
    plugin's function `call`, whose result it refused. An error of an operation that was noted before
    has the place of that operation as `operation_place`.
    """
    noted: tuple[str, int] | None = getattr(error, "operation_place", None)
    if noted is not None:
        return noted
    frames = _frames(error.__traceback__)
    own_frames = [frame for frame in frames if not frame[0].startswith((_SDK, *others))]
    code: CodeType | None = getattr(call, "__code__", None)
    if not own_frames and code is not None:
        return code.co_filename, code.co_firstlineno
    frames = own_frames or frames
    return frames[-1][:2] if frames else ("", 0)


def is_of_sdk(error: BaseException) -> bool:
    """Whether the SDK raised `error`."""
    frames = _frames(error.__traceback__)
    return bool(frames) and frames[-1][0].startswith(_SDK)


def _format_one(error: BaseException) -> str:
    frames = _frames(error.__traceback__)
    lines = ["Traceback (most recent call last):"] if frames else []
    shown = _lines(frames)
    # A recursion over several functions has hundreds of frames.
    if len(shown) > 40:
        shown = [*shown[:20], f"  ... {len(shown) - 40} frames", *shown[-20:]]
    described = describe(error)
    if len(described) > _TEXT_MAX:
        described = f"{described[:_TEXT_MAX]} [cut]"
    if isinstance(error, SyntaxError):
        file, line, text = error.filename, error.lineno, error.text
        # A plugin may have raised it, with anything in it.
        if isinstance(file, str) and isinstance(line, int):
            source = _source_line(file, line) or str(text or "").strip()
            shown += [f'  File "{file}", line {line}', f"    {source}"]
    return "\n".join([*lines, *shown, described])


def _lines(frames: list[tuple[str, int, str]]) -> list[str]:
    """A line for each frame. Of more than three equal ones, Python shows three, too."""
    lines = []
    for (file, line, name), equal in groupby(frames):
        count = len([*equal])
        source = _source_line(file, line)
        shown = f'  File "{file}", line {line}, in {name}'
        lines += [f"{shown}\n    {source}" if source else shown] * min(count, 3)
        if count > 3:
            more = count - 3
            lines.append(f"  [Previous line repeated {more} more time{'s' if more > 1 else ''}]")
    return lines


def _source_line(file: str, line: int) -> str:
    lines = sources.get(file, "").split("\n")
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _frames(traceback: TracebackType | None) -> list[tuple[str, int, str]]:
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        found.append((code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return found


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "<its text cannot be made>"
