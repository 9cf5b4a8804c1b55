"""The interface `models`. A test registers a function for each model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .result import Err, Ok
from .tensors import NamedTensor, Tensor
from .types import Failure


@dataclass
class InferError_NotGranted:
    value: str


@dataclass
class InferError_InvalidInput:
    value: str


@dataclass
class InferError_Overloaded:
    value: str


@dataclass
class InferError_Unavailable:
    value: str


@dataclass
class InferError_Failed:
    value: str


InferError = (
    InferError_NotGranted
    | InferError_InvalidInput
    | InferError_Overloaded
    | InferError_Unavailable
    | InferError_Failed
)


@dataclass
class Run:
    model: str
    inputs: list[tuple[str, Tensor]]


@dataclass
class HandleError_Failure:
    value: Failure


@dataclass
class HandleError_Infer:
    value: InferError


HandleError = HandleError_Failure | HandleError_Infer

#: The models of the test that runs, by their names.
registered: dict[str, Callable[[list[tuple[str, Tensor]]], list[NamedTensor]]] = {}


def infer(model: str, inputs: list[tuple[str, Tensor]]) -> list[NamedTensor]:
    run = registered.get(model)
    if run is None:
        text = (
            f"the test has no model {model!r}: "
            f"call the plugin within `with testing.model({model!r}, function):`"
        )
        raise Err(InferError_NotGranted(text))
    return run(inputs)


def infer_all(runs: list[Run]) -> list[Ok[list[NamedTensor]] | Err[InferError]]:
    found: list[Ok[list[NamedTensor]] | Err[InferError]] = []
    for run in runs:
        try:
            found.append(Ok(infer(run.model, run.inputs)))
        except Err as error:
            found.append(error)
    return found
