"""Failures: the ways in which a plugin gives no answer, and a model no outputs."""

from . import checks
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


class InferError(Exception):
    """Why a model gave no outputs. `models.infer` raises one of its subclasses.

    If `handle` does not catch it, the client gets the status of the class, as from a pipeline
    without a handler.
    """

    #: The case of the contract's `infer-error`, as the bindings name it.
    _case = "Failed"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        #: What is wrong, and what to set or to do.
        self.text = text


class ModelNotGranted(InferError):
    """The pipeline's document does not name this model under `models`: 500."""

    _case = "NotGranted"


class InvalidModelInput(InferError):
    """The inputs are not what the model takes: 500."""

    _case = "InvalidInput"


class ModelOverloaded(InferError):
    """The model is too busy, or the tenant has as much under way as it may have: 503.

    The same run can succeed later.
    """

    _case = "Overloaded"


class ModelUnavailable(InferError):
    """The model cannot run now: 503."""

    _case = "Unavailable"


class ModelFailed(InferError):
    """The model failed on these inputs: 500."""

    _case = "Failed"


def text_of(error: Failure | InferError) -> str:
    """For the SDK: the text of an error, as the bindings take it.

    A subclass may have no `text`, or one that is not a str. Raises what its own code raises.
    """
    text = getattr(error, "text", None)
    return checks.text("the text", text if isinstance(text, str) else str(error))
