"""Making a response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from . import json
from .failure import Internal


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

        Raises `Internal` if `value` cannot be written as JSON. NaN and infinity cannot.
        """
        try:
            body = json.dumps(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise Internal(f"the response as JSON: {error}") from None
        return cls(body, "application/json", status, headers or {})

    @classmethod
    def text(
        cls, text: str, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        """A plain text in UTF-8."""
        return cls(text.encode(), "text/plain; charset=utf-8", status, headers or {})
