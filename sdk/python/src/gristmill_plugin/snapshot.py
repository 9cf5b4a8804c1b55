"""What makes the first call of an instance fast.

The component's memory is stored when the plugin is built, and each fresh instance begins with it.
An instance pays for each page of it that it touches, and for what Python learns about code that
runs for the first time. So both is done here, before the memory is stored.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from . import host, image, json, models
from . import numpy as np
from .finalizer import Finalizer
from .host import arrays, tensors, types
from .host import image as host_image
from .outputs import Outputs, Prepared
from .request import Context, Request
from .response import Response
from .tensor import Dtype, Tensor, shortest_float32

#: Python has learnt all about a function after fewer calls.
_ROUNDS = 16

#: Larger blocks of free memory are rare.
_LARGEST_HOLE = 8 << 10

#: Free memory in one piece, for the calls: an instance that has grown is not used again.
_FREE_BYTES = 2 << 20

_kept: list[object] = []

_Exported = Callable[..., Any]


class _Sample:
    """Calls of the SDK as most plugins make them."""

    def preprocess(self, context: Context, request: Request) -> Prepared:
        picture = image.Pixels.decode(request.body, image.Color.GRAY)
        pixels = picture.resize(28, 28).to_tensor(mean=[0.5], std=[0.5])
        values = Tensor.from_values([1, 2], Dtype.FLOAT32, request.json()["values"])
        rows = request.json_tensor("/rows", keys=["a", "b"])
        apart = np.asarray(rows) - np.mean(rows, axis=0)
        scaled = np.where(apart[:, 1:] > 0, apart, 0.5) / (apart.std() + 1)
        inputs = {"pixels": pixels, "values": values, "rows": rows, "scaled": scaled}
        size = len(request.json_blob("/image"))
        count = request.json("/count", rows.shape[0])
        return Prepared(inputs, json.dumps({"rows": count, "bytes": size}))

    def postprocess(self, context: Context, outputs: Outputs, state: bytes) -> Response:
        probabilities = outputs.tensor("output", [None, 2]).softmax()
        top = [
            {"label": found.index, "probability": shortest_float32(found.value)}
            for found in probabilities.top_k(2)
        ]
        best = np.asarray(probabilities).max(axis=1)
        top.append({"label": int(best.argmax()), "probability": best.tolist()[0]})
        rows = json.loads(state)["rows"] if state else None
        values = outputs.view("output", [rows, 2]).values.tolist()
        if state:
            return Response.json({"top": top, "values": values})
        return Response.json({"probabilities": probabilities})

    def handle(self, context: Context, request: Request) -> Response:
        rows = request.json_tensor("/rows")
        first = models.infer("first", {"input": rows}).tensor("output", [None, 2])
        runs = [models.Run("second", {"input": first}), models.Run("third", {"input": rows})]
        found = [one for one in models.infer_all(runs) if isinstance(one, Outputs)]
        return Response.json({"outputs": [outputs["output"] for outputs in found]})


def learn(preprocess_of: _Exported, postprocess_of: _Exported, handle_of: _Exported) -> None:
    """Run the SDK's code, with answers in place of the host's.

    The arguments make the component's exports of a plugin.
    """
    sample = _Sample()
    preprocess, postprocess = preprocess_of(sample), postprocess_of(sample)
    handle = None if host.models is None else handle_of(sample)
    import componentize_py_runtime as runtime  # type: ignore[import-not-found]
    from componentize_py_types import Ok  # type: ignore[import-not-found]

    answers: list[object] = []
    call_import = runtime.call_import
    runtime.call_import = lambda index, arguments: answers.pop(0)
    try:
        for _ in range(_ROUNDS):
            answers += [_held(types.Blob), Ok(_held(host_image.Pixels))]
            answers += [Ok(_held(host_image.Pixels)), Ok(_held(tensors.Tensor))]
            answers += [Ok(b'{"values":[1,0.5]}'), Ok(_held(tensors.Tensor))]
            answers += [Ok(_held(tensors.Tensor)), Ok(_held(types.Blob)), 3, [1, 2], Ok(None)]
            answers += [Ok([arrays.Made(_held(tensors.Tensor), Dtype.FLOAT32, [1, 2])])]
            preprocess(None, _held(types.Context), _held(types.Request))
            for state, written in ((b'{"rows":1}', []), (b"", [Ok(b"{}")])):
                answers += [Dtype.FLOAT32, [1, 2], _held(tensors.Tensor)]
                answers += [[tensors.Scored(0, 0.75), tensors.Scored(1, 0.25)]]
                # `best` is read later, so the host makes both.
                index = arrays.Made(_held(tensors.Tensor), Dtype.INT64, [])
                made = arrays.Made(_held(tensors.Tensor), Dtype.FLOAT32, [1])
                answers += [Ok([made, index]), bytes(8), bytes(4), bytes(8)]
                answers += written
                output = tensors.NamedTensor("output", _held(tensors.Tensor))
                postprocess(None, _held(types.Context), [output], state)
            if handle is not None:
                answers += [Ok(_held(tensors.Tensor)), _outputs(Ok), Dtype.FLOAT32, [1, 2]]
                answers += [[_outputs(Ok), _outputs(Ok)], Ok(b"{}")]
                handle(None, _held(types.Context), _held(types.Request))
    finally:
        runtime.call_import = call_import


def _outputs(ok: Any) -> Any:
    """What a run of a model gives. `ok` is the class of the bindings."""
    return ok([tensors.NamedTensor("output", _held(tensors.Tensor))])


def _held(kind: Any) -> Any:
    """An object of the bindings, as the runtime makes them."""
    held = kind.__new__(kind)
    held.handle = 0
    held.finalizer = Finalizer(held, None, 0, 0)
    return held


def settle(keep: Callable[[], None] | None = None) -> None:
    """Prepare the memory that is about to be stored. `keep` looks at the objects in it."""
    gc.collect()
    _fill_holes()
    if keep is not None:
        keep()
    # Objects that exist now are never garbage: without this, a collection would visit all of them.
    gc.freeze()


def _fill_holes() -> None:
    """Let the calls take their memory from one place.

    Importing leaves small holes everywhere. New objects would go there, each to a page that the
    instance has not touched yet. Free holes are in lists, so to free an object beside one would
    touch two more, anywhere.
    """
    end = id(bytes(_FREE_BYTES))
    for size in range(_LARGEST_HOLE, 0, -8):
        while id(block := bytes(size)) < end:
            _kept.append(block)
    # The smallest holes have no place for bytes.
    while id(least := object()) < end:
        _kept.append(least)
