"""Making a response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import host, json
from .failure import Internal
from .request import Blob
from .tensor import Tensor


@dataclass(frozen=True)
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

        Tensors and blobs may stand in it, and the host writes them: a tensor as lists of lists of
        its shape, whose floats have the fewest digits that mean the same value of the dtype; a
        blob as a text in base64. `Response.json({"scores": outputs.tensor("output")})` is many
        times faster than lists of floats.

        Raises `Internal` if `value` cannot be written as JSON. NaN and infinity cannot.
        """
        try:
            body = _written(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise Internal(f"the response as JSON: {error}") from None
        return cls(body, "application/json", status, headers or {})

    @classmethod
    def text(
        cls, text: str, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        """A plain text in UTF-8."""
        return cls(text.encode(), "text/plain; charset=utf-8", status, headers or {})


def _written(value: object) -> bytes:
    held: list[Tensor | Blob] = []

    def hold(found: object) -> str:
        if not isinstance(found, (Tensor, Blob)):
            raise TypeError(f"Object of type {type(found).__name__} is not JSON serializable")
        held.append(found)
        return mark

    mark = "\0"
    while True:
        text = json.encode(value, hold)
        if not held:
            return text.encode()
        texts = text.split(json.encode(mark))
        if len(texts) == len(held) + 1:
            break
        # A text of the value is the mark.
        held.clear()
        mark += "\0"
    pieces: list[Any] = [host.json.Piece_Text(texts[0])]
    for found, after in zip(held, texts[1:], strict=True):
        if isinstance(found, Tensor):
            pieces.append(host.json.Piece_Tensor(found._handle))
        else:
            pieces.append(host.json.Piece_Base64(found._handle))
        pieces.append(host.json.Piece_Text(after))
    try:
        return host.json.write(pieces)
    except host.Err as error:
        raise ValueError(error.value) from None
