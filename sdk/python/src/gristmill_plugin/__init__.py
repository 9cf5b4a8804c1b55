"""Write Gristmill plugins in Python: pre- and postprocessing that runs sandboxed around a model.

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

from . import image, json, log, numpy
from .blob import Blob
from .failure import Failure, Internal, InvalidInput, Unprocessable, UnsupportedMediaType
from .outputs import MissingOutput, Outputs, Prepared
from .plugin import Postprocessor, Preprocessor, Processor, export
from .request import Context, Fields, Part, Request
from .response import Response
from .tensor import Dtype, Scored, Tensor, View, shortest_float32

__all__ = [
    "Blob",
    "Context",
    "Dtype",
    "Failure",
    "Fields",
    "Internal",
    "InvalidInput",
    "MissingOutput",
    "Outputs",
    "Part",
    "Postprocessor",
    "Prepared",
    "Preprocessor",
    "Processor",
    "Request",
    "Response",
    "Scored",
    "Tensor",
    "Unprocessable",
    "UnsupportedMediaType",
    "View",
    "export",
    "image",
    "json",
    "log",
    "numpy",
    "shortest_float32",
]
