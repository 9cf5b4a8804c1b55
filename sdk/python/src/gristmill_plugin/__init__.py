"""Write Gristmill plugins in Python: code that runs sandboxed around models.

A plugin is one class in `app.py`:

    from gristmill_plugin import Dtype, Prepared, Processor, Response, Tensor, export

    @export
    class Doubler(Processor):
        def preprocess(self, context, request):
            values = request.json()
            shape = [len(values), 1]
            return Prepared({"input": Tensor.from_values(shape, Dtype.FLOAT32, values)})

        def postprocess(self, context, outputs, state):
            return Response.json(outputs.view("output", [None, 1]).values.tolist())

`gristmill plugin build` makes a component of it. Under pytest the same code runs on a reference
host: see `gristmill_plugin.testing`.
"""

from . import assets, http, image, json, log, models, numpy, store, tables, tokenizer
from .blob import Blob
from .failure import (
    Failure,
    InferError,
    Internal,
    InvalidInput,
    InvalidModelInput,
    ModelFailed,
    ModelNotGranted,
    ModelOverloaded,
    ModelUnavailable,
    Unprocessable,
    UnsupportedMediaType,
)
from .kept import kept
from .outputs import MissingOutput, Outputs, Prepared
from .plugin import Handler, Postprocessor, Preprocessor, Processor, export
from .request import Context, Fields, Part, Request
from .response import Records, Response
from .tensor import Dtype, Scored, Tensor, View, shortest_float32
from .tokenizer import Tokenizer

__all__ = [
    "Blob",
    "Context",
    "Dtype",
    "Failure",
    "Fields",
    "Handler",
    "InferError",
    "Internal",
    "InvalidInput",
    "InvalidModelInput",
    "MissingOutput",
    "ModelFailed",
    "ModelNotGranted",
    "ModelOverloaded",
    "ModelUnavailable",
    "Outputs",
    "Part",
    "Postprocessor",
    "Prepared",
    "Preprocessor",
    "Processor",
    "Records",
    "Request",
    "Response",
    "Scored",
    "Tensor",
    "Tokenizer",
    "Unprocessable",
    "UnsupportedMediaType",
    "View",
    "assets",
    "export",
    "http",
    "image",
    "json",
    "kept",
    "log",
    "models",
    "numpy",
    "shortest_float32",
    "store",
    "tables",
    "tokenizer",
]
