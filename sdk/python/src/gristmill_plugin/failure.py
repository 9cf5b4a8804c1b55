"""Failures: the ways in which a plugin gives no answer."""

from .host import types


class Failure(Exception):
    """Why a plugin gives no answer. Raise one of its subclasses.

    The host cuts the text at 4 KiB.
    """

    _case: type = types.Failure_Internal

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class InvalidInput(Failure):
    """The request cannot be understood: 400. The text reaches the client."""

    _case = types.Failure_InvalidInput


class UnsupportedMediaType(Failure):
    """This plugin does not take the request's media type: 415. The text reaches the client."""

    _case = types.Failure_UnsupportedMediaType


class Unprocessable(Failure):
    """The request is understood, but cannot be served: 422. The text reaches the client."""

    _case = types.Failure_Unprocessable


class Internal(Failure):
    """The plugin's own fault: 500. The text goes to the log only."""

    _case = types.Failure_Internal
