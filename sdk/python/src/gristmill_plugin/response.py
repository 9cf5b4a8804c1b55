"""Making a response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import checks, host, json, numpy
from .blob import Blob
from .failure import Internal
from .tensor import Elements


class Records:
    """A list of objects in JSON, one for each element of its columns, which the host writes.

        Records(id=ids, score=scores)  # [{"id":7,"score":0.5},{"id":9,"score":0.25}]

    Columns are tensors or arrays of one dimension and the same length, by the objects' keys. Keys
    that are no names of Python are given as a mapping: `Records({"product-id": ids})`.
    """

    __slots__ = ("columns",)

    def __init__(
        self, columns: Mapping[str, Elements] | None = None, /, **more: Elements
    ) -> None:
        self.columns = {**columns, **more} if columns else more
        for key, column in self.columns.items():
            if type(key) is not str or not isinstance(column, Elements):
                checks.instance("a key of Records", key, str)
                checks.instance(f"the column {key!r}", column, Elements)


@dataclass(slots=True)
class Response:
    """The answer to the client.

    `status` is 200 to 599. `content_type` may be empty if the body is empty. The client gets only
    some `headers`: see `response.headers` in `wit/types.wit`.
    """

    body: bytes = b""
    content_type: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def json(
        cls, value: object, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        """`value` as JSON.

        Tensors, arrays, `Records` and blobs may stand in it, and the host writes them: a tensor as
        lists of lists of its shape, whose floats have the fewest digits that mean the same value
        of the dtype; `Records` as a list of objects; a blob as a text in base64.
        `Response.json({"scores": outputs.tensor("output")})` is many times faster than lists of
        floats.

        Raises `Internal` if `value` cannot be written as JSON. NaN and infinity cannot.
        """
        try:
            body = write_json(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise Internal(f"the response as JSON: {error}") from None
        return cls(body, "application/json", status, headers or {})

    @classmethod
    def text(
        cls, text: str, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        """A plain text in UTF-8."""
        return cls(text.encode(), "text/plain; charset=utf-8", status, headers or {})


#: The tensors, records and blobs of the value that is being written.
_held: list[Elements | Blob | Records] = []

#: The text that stands in place of one.
_mark = "\0"


def _hold(found: object) -> str:
    if not isinstance(found, (Elements, Blob, Records)):
        raise TypeError(f"Object of type {type(found).__name__} is not JSON serializable")
    _held.append(found)
    return _mark


_encode = json.encoder_with(_hold)

#: The first mark in JSON.
_FIRST_MARK = _encode(_mark)


def write_json(value: object) -> bytes:
    """For the SDK: `value` as JSON, in which tensors, arrays, records and blobs may stand."""
    global _mark
    mark, marked = _mark, _FIRST_MARK
    try:
        while True:
            text = _encode(value)
            if not _held:
                return text.encode()
            texts = text.split(marked)
            if len(texts) == len(_held) + 1:
                return _with(texts, _held)
            # A text of the value is the mark.
            _held.clear()
            _mark += _mark
            marked = _encode(_mark)
    finally:
        _held.clear()
        _mark = mark


def _with(texts: list[str], held: list[Elements | Blob | Records]) -> bytes:
    """The document that has these texts, and one of `held` after each but the last."""
    parts: list[Any] = []
    arrays: list[object] = []
    for found in held:
        arrays += found.columns.values() if type(found) is Records else [found]
    numpy.make_together(arrays)
    for text, found in zip(texts, held, strict=False):
        parts.append(host.json.Part_Text(text))
        if isinstance(found, Records):
            columns = [
                host.json.Column(key, column._handle) for key, column in found.columns.items()
            ]
            parts.append(host.json.Part_Objects(columns))
        elif isinstance(found, Blob):
            parts.append(host.json.Part_Base64(found._handle))
        else:
            parts.append(host.json.Part_Tensor(found._handle))
    parts.append(host.json.Part_Text(texts[-1]))
    try:
        return host.json.document(parts)
    except host.Err as error:
        raise ValueError(error.value) from None
