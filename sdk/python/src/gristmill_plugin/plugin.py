"""The classes that a plugin subclasses, and the decorator that exports one of them."""

from __future__ import annotations

import logging
import sys
from abc import ABC, abstractmethod
from typing import Any, TypeVar

from . import checks, enums, finalizer, host, log, models, numpy, snapshot
from .failure import Failure, InferError, Internal, text_of
from .host import Err, prepare, tensors, types
from .kept import lower_all, put_all
from .outputs import Outputs, Prepared
from .request import Context, Request
from .response import Response
from .tensor import Elements, Tensor
from .tracebacks import describe, format_exception, is_of_sdk, place


class Preprocessor(ABC):
    """A plugin that turns a request into a model's inputs."""

    @abstractmethod
    def preprocess(self, context: Context, request: Request) -> Prepared:
        """The model's inputs, and the state for the postprocessor. Called once for each request."""


class Postprocessor(ABC):
    """A plugin that turns a model's outputs into a response."""

    @abstractmethod
    def postprocess(self, context: Context, outputs: Outputs, state: bytes) -> Response:
        """The response. Called once for each request.

        `outputs` has this request's rows of all outputs, and `state` comes from the preprocessor.
        """


class Processor(Preprocessor, Postprocessor):
    """Both in one plugin.

    Unless the pipeline reuses instances, `postprocess` runs in another instance than `preprocess`:
    an attribute that one sets is not there in the other. Use the state.
    """


class Handler(ABC):
    """A plugin that answers a request itself, with the runs of models that it needs.

    See `gristmill_plugin.models`. A class that is a `Processor` as well exports all three calls,
    and the pipeline decides which of them run.
    """

    @abstractmethod
    def handle(self, context: Context, request: Request) -> Response:
        """The response. Called once for each request.

        An `InferError` that it does not catch becomes the request's answer.
        """


#: Whether this is the shared runtime, into which plugins are loaded.
_is_runtime = False

_Plugin = TypeVar("_Plugin", bound="type[Preprocessor] | type[Postprocessor] | type[Handler]")


def export(plugin: _Plugin) -> _Plugin:
    """Class decorator: this class is the plugin of its module.

    An instance is made at once, without arguments. In a component this happens when it is built,
    so what `__init__` and the module compute is there, ready, at every call.
    """
    module = sys.modules[plugin.__module__]
    exported = getattr(module, "WitWorld", None)
    if exported is not None:
        raise TypeError(f"{plugin.__module__} exports {exported.plugin.__name__} already")
    # componentize-py looks for a class of this name in the module that it builds.
    module.WitWorld = _world_of(plugin)  # type: ignore[attr-defined]
    if sys.platform == "wasi" and not _is_runtime:
        from wit_world import WitWorld

        _prepare_component(plugin, WitWorld)
    return plugin


def _world_of(plugin: type[Preprocessor] | type[Postprocessor] | type[Handler]) -> type:
    """A class with the functions that the component exports."""
    if not issubclass(plugin, (Preprocessor, Postprocessor, Handler)):
        raise TypeError(
            f"{plugin.__name__} is not a Processor, Preprocessor, Postprocessor or Handler"
        )
    instance = plugin()
    functions: dict[str, object] = {"plugin": plugin}
    if isinstance(instance, Preprocessor):
        functions["preprocess"] = _preprocess_of(instance)
    if isinstance(instance, Postprocessor):
        functions["postprocess"] = _postprocess_of(instance)
    if isinstance(instance, Handler):
        functions["handle"] = _handle_of(instance)
    return type("WitWorld", (), functions)


def _preprocess_of(plugin: Preprocessor) -> object:
    call = plugin.preprocess

    def preprocess(_: object, context: types.Context, request: types.Request) -> prepare.Prepared:
        numpy.begin_call()
        try:
            return _lower_prepared(call(Context(context), Request(request)))
        except BaseException as error:
            raise Err(_lower_error(error, call)) from None
        finally:
            numpy.end_call()
            log.flush()

    return preprocess


def _postprocess_of(plugin: Postprocessor) -> object:
    call = plugin.postprocess

    def postprocess(
        _: object, context: types.Context, outputs: list[tensors.NamedTensor], state: bytes
    ) -> types.Response:
        numpy.begin_call()
        try:
            named = Outputs({output.name: Tensor(output.tensor) for output in outputs})
            return _lower_response(call(Context(context), named, state), "postprocess")
        except BaseException as error:
            raise Err(_lower_error(error, call)) from None
        finally:
            numpy.end_call()
            log.flush()

    return postprocess


def _handle_of(plugin: Handler) -> object:
    call = plugin.handle

    def handle(_: object, context: types.Context, request: types.Request) -> types.Response:
        numpy.begin_call()
        try:
            return _lower_response(call(Context(context), Request(request)), "handle")
        except BaseException as error:
            raise Err(_lower_handle_error(error, call)) from None
        finally:
            numpy.end_call()
            log.flush()

    return handle


# A value of a wrong type would end the call without a message, so the types are checked here.


def _lower_prepared(prepared: Prepared) -> prepare.Prepared:
    checks.instance("the result of preprocess", prepared, Prepared)
    inputs = []
    # All arrays, before the host takes what one of them is made of.
    numpy.make_together([*prepared.inputs.values(), *prepared.keep.values()])
    for name, tensor in prepared.inputs.items():
        if type(name) is not str or not isinstance(tensor, Elements):
            checks.instance("an input's name", name, str)
            checks.instance(f"input {name!r}", tensor, Tensor)
        inputs.append(tensors.NamedTensor(name, tensor._handle))
    keep = lower_all(prepared.keep) if prepared.keep else []
    if len(inputs) + len(keep) > 1:
        _check_distinct(inputs, keep)
    state = prepared.state
    if type(state) is not bytes:
        checks.instance("the state", state, bytes)
    if keep:
        put_all(keep)
    return prepare.Prepared(inputs, state)


def _check_distinct(inputs: list[tensors.NamedTensor], keep: list[tuple[str, Any]]) -> None:
    """Raises `TypeError` if the host would take one handle twice."""
    handles = [id(input.tensor) for input in inputs] + [id(value.value) for _, value in keep]
    if len(set(handles)) == len(handles):
        return
    taken = [(f"input {input.name!r}", input.tensor) for input in inputs]
    taken += [(f"keep {name!r}", value.value) for name, value in keep]
    names: dict[int, str] = {}
    for name, handle in taken:
        other = names.setdefault(id(handle), name)
        if other != name:
            raise TypeError(
                f"{name} is the same object as {other}: make it twice, because the host takes both"
            )


def _lower_response(response: Response, call: str) -> types.Response:
    if not isinstance(response, Response):
        checks.instance(f"the result of {call}", response, Response)
    status, content_type, body = response.status, response.content_type, response.body
    if type(status) is not int:
        checks.instance("the response's status", status, int)
    if not 200 <= status <= 599:
        raise ValueError(f"the response's status is {status}, not 200 to 599")
    if type(content_type) is not str or type(body) is not bytes:
        checks.instance("the response's content_type", content_type, str)
        checks.instance("the response's body", body, bytes)
    headers = []
    if response.headers:
        for name, value in response.headers.items():
            checks.instance("a header's name", name, str)
            checks.instance(f"header {name!r}", value, str)
            headers.append(types.Field(name, value))
    return types.Response(status, content_type, headers, body)


def _lower_handle_error(error: BaseException, call: object) -> Any:
    """An exception of `handle` as the host knows it."""
    if isinstance(error, InferError):
        try:
            return host.models.HandleError_Infer(models.lower_error(error))
        except BaseException as other:
            # A subclass of the plugin has raised it.
            error = other
    return host.models.HandleError_Failure(_lower_error(error, call))


def _lower_error(error: BaseException, call: object) -> types.Failure:
    """A failure as the host knows it. Any other exception of `call` is logged first."""
    if isinstance(error, Failure):
        try:
            text = text_of(error)
            # What the SDK refuses is a fault at a line of the plugin. Clients do not see this text.
            if isinstance(error, Internal) and is_of_sdk(error):
                file, line = place(error, call)
                text = f"{text} ({file}:{line})"
            lowered: types.Failure = error._case(text)
            return lowered
        except BaseException as other:
            # A subclass of the plugin has raised it.
            error = other
    file, line = place(error, call)
    traceback = format_exception(error)
    # With the field `uncaught` the host does not log the failure once more.
    log.error(describe(error), uncaught="true", file=file, line=line, traceback=traceback)
    text = f"{describe(error)} ({file}:{line})"
    return Internal._case(checks.text("the text", text))


def _prepare_component(plugin: type, world: type) -> None:
    """Settle what the component starts with: it is built right after the module's import."""
    for name in ("preprocess", "postprocess", "handle"):
        if hasattr(world, name) and not hasattr(plugin, name):
            raise TypeError(f"the component's world exports {name}, which {plugin.__name__} lacks")
    _prepare()
    snapshot.settle()


def prepare_runtime() -> None:
    """Settle what the shared runtime starts with. Plugins are loaded into it later."""
    global _is_runtime
    _is_runtime = True
    _prepare()


def _prepare() -> None:
    sys.stdout, sys.stderr = log.Stream("stdout"), log.Stream("stderr")
    if not logging.root.handlers:
        logging.basicConfig(handlers=[log.Handler()], level=logging.INFO)
    finalizer.install()
    enums.quicken(host.INTERFACES)
    snapshot.learn(_preprocess_of, _postprocess_of, _handle_of)
