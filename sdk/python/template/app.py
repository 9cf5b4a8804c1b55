"""{{name}}: rows of numbers in, the model's output for each row out.

Code at the level of the module runs once, when the plugin is uploaded. Import everything here.
"""

from gristmill_plugin import (
    Context,
    InvalidInput,
    Outputs,
    Prepared,
    Processor,
    Request,
    Response,
    export,
)


@export
class Plugin(Processor):
    def preprocess(self, context: Context, request: Request) -> Prepared:
        rows = request.json_tensor()
        if len(rows.shape) != 2:
            raise InvalidInput("the body is not a list of rows: [[1, 2], [3, 4]]")
        return Prepared({"input": rows})

    def postprocess(self, context: Context, outputs: Outputs, state: bytes) -> Response:
        return Response.json({"outputs": outputs["output"]})
