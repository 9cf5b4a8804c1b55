"""{{name}}: rows of numbers in, the model's output for each row out.

Code at the level of the module runs once, when the plugin is uploaded. Import everything here.
"""

from gristmill_plugin import (
    Context,
    Dtype,
    InvalidInput,
    Outputs,
    Prepared,
    Processor,
    Request,
    Response,
    Tensor,
    export,
    log,
)


@export
class Plugin(Processor):
    def preprocess(self, context: Context, request: Request) -> Prepared:
        rows = request.json()
        if not isinstance(rows, list) or not rows or not isinstance(rows[0], list):
            raise InvalidInput("the body is not a list of rows: [[1, 2], [3, 4]]")
        width = len(rows[0])
        if any(not isinstance(row, list) or len(row) != width for row in rows):
            raise InvalidInput(f"a row is not a list of {width} numbers, as the first one is")
        try:
            values = [float(value) for row in rows for value in row]
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInput(f"a value is not a number: {error}") from None
        log.info("rows read", count=len(rows), width=width)
        return Prepared({"input": Tensor.from_values([len(rows), width], Dtype.FLOAT32, values)})

    def postprocess(self, context: Context, outputs: Outputs, state: bytes) -> Response:
        view = outputs.view("output", [None, None])
        return Response.json({"outputs": view.tolist()})
