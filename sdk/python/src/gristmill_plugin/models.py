"""Runs of the pipeline's models, in `handle`.

    from gristmill_plugin import models

    found = models.infer("detector", {"input": pixels})
    boxes = found.tensor("boxes", [1, None, 4])

The pipeline's document names the models under `models`. A run goes through the model's batcher, as
a request does that has no handler, and ends at the request's deadline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import checks, host, numpy
from .failure import (
    InferError,
    InvalidModelInput,
    ModelFailed,
    ModelNotGranted,
    ModelOverloaded,
    ModelUnavailable,
    text_of,
)
from .outputs import Outputs
from .tensor import Elements, Tensor

__all__ = ["Run", "infer", "infer_all"]


@dataclass(slots=True)
class Run:
    """One run of a model, for `infer_all`. `model` and `inputs` are those of `infer`."""

    model: str
    inputs: Mapping[str, Elements]


def infer(model: str, inputs: Mapping[str, Elements]) -> Outputs:
    """Run a model. Returns this request's rows of all its outputs.

    `inputs` has a tensor or array for each of the model's inputs, in any order. Dimension 0 is
    rows, and all have the same number of them. The plugin keeps them, so a tensor can be an input
    of several runs.

    Raises an `InferError` if the model gives no outputs: `ModelNotGranted`, `InvalidModelInput`,
    `ModelOverloaded`, `ModelUnavailable` or `ModelFailed`.
    """
    name = _checked(model, inputs)
    numpy.make_together(inputs.values(), keeps_others=True)
    try:
        return _outputs(_host().infer(name, _lowered(inputs)))
    except host.Err as error:
        raise _error(error.value) from None


def infer_all(runs: Iterable[Run]) -> list[Outputs | InferError]:
    """Run models side by side, or one model several times: the runs may share batches.

    Returns when all have ended. The result has the outcome of each run, in order: its outputs, or
    the error that `infer` would raise, which is not raised here.
    """
    listed = list(runs)
    names = []
    for run in listed:
        checks.instance("a run", run, Run)
        names.append(_checked(run.model, run.inputs))
    given = [tensor for run in listed for tensor in run.inputs.values()]
    numpy.make_together(given, keeps_others=True)
    interface = _host()
    found = interface.infer_all(
        [interface.Run(name, _lowered(run.inputs)) for name, run in zip(names, listed, strict=True)]
    )
    return [
        _error(one.value) if isinstance(one, host.Err) else _outputs(one.value) for one in found
    ]


def _host() -> Any:
    if host.models is None:
        raise RuntimeError("only a component of the world handler can run models")
    return host.models


# A value of a wrong type would end the call without a message, so the types are checked here.


def _checked(model: str, inputs: Mapping[str, Elements]) -> str:
    """The model's name, if the arguments are of the right types."""
    name = checks.text("the model's name", model)
    if type(inputs) is not dict:
        checks.instance(f"`inputs` of model {model!r}", inputs, Mapping)
    for input, tensor in inputs.items():
        if type(input) is not str or not isinstance(tensor, Elements):
            checks.instance(f"the name of an input of model {model!r}", input, str)
            checks.instance(f"input {input!r} of model {model!r}", tensor, Tensor)
    return name


def _lowered(inputs: Mapping[str, Elements]) -> list[tuple[str, Any]]:
    return [(checks.text("a name", name), tensor._handle) for name, tensor in inputs.items()]


def _outputs(named: list[host.tensors.NamedTensor]) -> Outputs:
    return Outputs({output.name: Tensor(output.tensor) for output in named})


_ERRORS: dict[str, type[InferError]] = {
    kind._case: kind
    for kind in (
        ModelNotGranted,
        InvalidModelInput,
        ModelOverloaded,
        ModelUnavailable,
        ModelFailed,
    )
}


def _error(found: Any) -> InferError:
    """The exception of an error as the host knows it."""
    return _ERRORS[type(found).__name__.removeprefix("InferError_")](found.value)


def lower_error(error: InferError) -> Any:
    """For the SDK: an exception as the host knows it."""
    return getattr(_host(), f"InferError_{error._case}")(text_of(error))
