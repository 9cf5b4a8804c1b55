import sys
import types

import pytest

from gristmill_plugin import (
    Dtype,
    Failure,
    Handler,
    InferError,
    Internal,
    InvalidInput,
    InvalidModelInput,
    ModelFailed,
    ModelNotGranted,
    ModelOverloaded,
    ModelUnavailable,
    Outputs,
    Prepared,
    Processor,
    Response,
    Tensor,
    export,
    models,
    testing,
)

ERRORS = [
    (ModelNotGranted, 500),
    (InvalidModelInput, 500),
    (ModelOverloaded, 503),
    (ModelUnavailable, 503),
    (ModelFailed, 500),
]


def row(*values):
    return Tensor.from_values([1, len(values)], Dtype.FLOAT32, values)


def doubled(inputs):
    values = [2 * value for value in inputs["input"].view()]
    return {"output": row(*values)}


def raising(error):
    def function(*_):
        raise error

    return function


def handle_with(function):
    """The server's view of a handler that calls `function`."""

    class Plugin(Handler):
        def handle(self, context, request):
            return function()

    return testing.handle(Plugin(), testing.context(), testing.request())


class Twice(Handler):
    """Runs two models one after another."""

    def handle(self, context, request):
        first = models.infer("first", {"input": request.json_tensor()})
        second = models.infer("second", {"input": first["output"]})
        return Response.json(second.tensor("output", [1, None]), headers={"x-plugin-a": "b"})


def test_a_handler_runs_models_one_after_another():
    with testing.model("first", doubled), testing.model("second", doubled):
        response = testing.handle(Twice(), testing.context(), testing.request(json=[[1, 2]]))
    assert (response.status, response.body) == (200, b"[[4.0,8.0]]")
    assert response.headers == {"x-plugin-a": "b"}


def test_outputs_are_those_of_the_model():
    with testing.model("m", lambda inputs: {"b": row(1), "a": row(2)}):
        found = models.infer("m", {})
    assert isinstance(found, Outputs) and list(found) == ["b", "a"]
    with pytest.raises(Internal, match="no output 'c'"):
        found["c"]


def test_runs_side_by_side_give_each_its_outcome():
    def uneven(inputs):
        if inputs["input"].view().values[0] == 2:
            raise ModelOverloaded("busy")
        return doubled(inputs)

    with testing.model("uneven", uneven):
        inputs = [{"input": row(value)} for value in (1, 2, 3)]
        found = models.infer_all(models.Run("uneven", each) for each in inputs)
        other = models.infer_all([models.Run("other", {})])
    assert [type(each) for each in found] == [Outputs, ModelOverloaded, Outputs]
    assert [found[at]["output"].view().tolist() for at in (0, 2)] == [[[2]], [[6]]]
    assert found[1].text == "busy"
    assert [type(each) for each in other] == [ModelNotGranted]
    assert models.infer_all([]) == []


def test_a_tensor_can_be_an_input_of_several_runs():
    tensor = row(1)
    with testing.model("m", lambda inputs: {"sum": inputs["a"], "b": inputs["b"]}):
        runs = [models.Run("m", {"a": tensor, "b": tensor})] * 2
        assert len(models.infer_all(runs)) == 2
        models.infer("m", {"a": tensor, "b": tensor})


@pytest.mark.parametrize(("kind", "status"), ERRORS)
def test_an_error_of_a_model_is_raised_and_has_its_status(kind, status):
    assert issubclass(kind, InferError) and not issubclass(kind, Failure)
    with testing.model("m", raising(kind("why"))):
        with pytest.raises(kind, match="why") as raised:
            models.infer("m", {})
        assert raised.value.text == "why"
        with testing.captured_log() as lines:
            failed = handle_with(lambda: models.infer("m", {}))
    assert failed == testing.Failed(status, "why")
    assert lines == []


def test_a_handler_can_take_care_of_an_error():
    def fallback():
        try:
            models.infer("large", {})
        except ModelOverloaded:
            return Response.text("a guess")

    with testing.model("large", raising(ModelOverloaded("busy"))):
        assert handle_with(fallback).body == b"a guess"


def test_an_error_that_infer_all_gave_can_be_raised():
    def first():
        raise models.infer_all([models.Run("m", {})])[0]

    with testing.model("m", raising(ModelUnavailable("not loaded"))):
        assert handle_with(first) == testing.Failed(503, "not loaded")


def test_a_model_that_no_test_registered_says_how():
    failed = handle_with(lambda: models.infer("detect", {}))
    text = (
        "the test has no model 'detect': "
        "call the plugin within `with testing.model('detect', function):`"
    )
    assert failed == testing.Failed(500, text)


def test_a_model_of_a_test_ends_with_its_block():
    with testing.model("m", lambda inputs: {"from": row(1)}):
        with testing.model("m", lambda inputs: {"from": row(2)}):
            assert models.infer("m", {})["from"].view().tolist() == [[2]]
        assert models.infer("m", {})["from"].view().tolist() == [[1]]
    with pytest.raises(ModelNotGranted):
        models.infer("m", {})


def test_a_model_of_a_test_returns_tensors():
    with (
        testing.model("m", lambda inputs: {"scores": [1]}),
        pytest.raises(TypeError, match="output 'scores' of the test's model 'm' is list, not Tens"),
    ):
        models.infer("m", {})


@pytest.mark.parametrize(
    ("failure", "status"), [(InvalidInput("why"), 400), (Internal("why"), 500)]
)
def test_failures_have_their_status(failure, status):
    with testing.captured_log() as lines:
        assert handle_with(raising(failure)) == testing.Failed(status, "why")
    assert lines == []


def test_any_other_exception_is_logged_with_its_place():
    def divide():
        return 1 / 0

    with testing.captured_log() as lines:
        failed = handle_with(divide)
    [line] = lines
    assert failed.status == 500 and "ZeroDivisionError: division by zero" in failed.text
    assert (line.fields["uncaught"], line.fields["file"]) == ("true", __file__)
    assert int(line.fields["line"]) == divide.__code__.co_firstlineno + 1
    assert "in divide" in line.fields["traceback"]


class Bare(InferError):
    """Says nothing to its base class."""

    def __init__(self, said):
        self.args = (said,)


class Numbered(InvalidInput):
    """Has a text that is not a str."""

    def __init__(self, number):
        super().__init__("number")
        self.text = number


class Unreadable(Exception):
    """Has a text that cannot be read."""

    @property
    def text(self):
        raise LookupError("no text")

    @text.setter
    def text(self, _):
        pass


class UnreadableModel(Unreadable, InferError):
    pass


class UnreadableInput(Unreadable, InvalidInput):
    pass


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (Bare("why"), 500, "why"),
        (ModelOverloaded("\ud800"), 503, "?"),
        (ModelOverloaded(7), 503, "7"),
        (Numbered(7), 400, "number"),
        (InvalidInput("\ud800"), 400, "?"),
    ],
)
def test_an_error_has_a_text_whatever_its_class_makes_of_it(error, status, text):
    with testing.captured_log() as lines:
        assert handle_with(raising(error)) == testing.Failed(status, text)
    assert lines == []


@pytest.mark.parametrize("error", [UnreadableModel("why"), UnreadableInput("why")])
def test_an_error_that_cannot_be_read_is_logged_with_its_place(error):
    with testing.captured_log() as lines:
        failed = handle_with(raising(error))
    [line] = lines
    assert failed.status == 500 and "LookupError: no text" in failed.text
    assert line.fields["file"] == __file__
    assert "in function" in line.fields["traceback"], "where it was raised"


def test_the_text_of_any_other_exception_is_valid():
    with testing.captured_log():
        failed = handle_with(raising(ValueError("\ud800")))
    assert failed.text.startswith("ValueError: ? (")


def test_an_error_of_a_model_in_another_call_is_a_fault():
    class Wrong(Processor):
        def preprocess(self, context, request):
            models.infer("m", {})

        def postprocess(self, context, outputs, state):
            return Response()

    with testing.captured_log() as lines:
        failed = testing.preprocess(Wrong(), testing.context(), testing.request())
    assert failed.status == 500 and "ModelNotGranted: the test has no model 'm'" in failed.text
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (lambda: models.infer(1, {}), "the model's name is 1, not a text"),
        (lambda: models.infer("m", [1]), "`inputs` of model 'm' is list, not Mapping"),
        (lambda: models.infer("m", {1: row(1)}), "the name of an input of model 'm' is int, not s"),
        (lambda: models.infer("m", {"x": [1]}), "input 'x' of model 'm' is list, not Tensor"),
        (lambda: models.infer_all([("m", {})]), "a run is tuple, not Run"),
        (lambda: models.infer_all([models.Run("m", {"x": 1})]), "input 'x' of model 'm' is int"),
    ],
)
def test_a_wrong_argument_is_named_at_the_plugins_line(run, text):
    with testing.captured_log() as lines:
        failed = handle_with(run)
    assert text in failed.text
    place = (__file__, str(run.__code__.co_firstlineno))
    assert (lines[0].fields["file"], lines[0].fields["line"]) == place


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, "the result of handle is NoneType, not Response"),
        (Response(status=99), "the response's status is 99, not 200 to 599"),
    ],
)
def test_a_wrong_result_is_named(result, text):
    with testing.captured_log():
        assert text in handle_with(lambda: result).text


def test_arrays_are_inputs_and_are_made_by_one_program(monkeypatch):
    np = pytest.importorskip("gristmill_plugin.numpy")
    pytest.importorskip("numpy")
    from gristmill_plugin import host

    ran = []
    evaluate = host.arrays.evaluate

    def counted(*arguments):
        ran.append(arguments)
        return evaluate(*arguments)

    monkeypatch.setattr(host.arrays, "evaluate", counted)

    def function():
        shifted = np.asarray(row(1, 2)) + 1
        given = [models.Run("m", {"input": shifted * 2}), models.Run("m", {"input": shifted * 3})]
        found = [each["output"].view().tolist() for each in models.infer_all(given)]
        # It was kept for this.
        assert shifted.tensor().view().tolist() == [[2, 3]]
        return Response.json(found)

    with testing.model("m", doubled):
        assert handle_with(function).body == b"[[[8.0,12.0]],[[12.0,18.0]]]"
    assert len(ran) == 1


@pytest.fixture
def module(monkeypatch):
    module = types.ModuleType("a_plugin")
    monkeypatch.setitem(sys.modules, "a_plugin", module)
    return module


def test_a_handler_exports_one_call(module):
    Twice.__module__ = "a_plugin"
    export(Twice)
    world = module.WitWorld
    calls = ("preprocess", "postprocess", "handle")
    assert [name for name in calls if hasattr(world, name)] == ["handle"]


def test_a_class_can_be_a_handler_and_a_processor(module):
    class All(Processor, Handler):
        def preprocess(self, context, request):
            return Prepared({})

        def postprocess(self, context, outputs, state):
            return Response()

        def handle(self, context, request):
            return Response(b"handled")

    All.__module__ = "a_plugin"
    export(All)
    world = module.WitWorld()
    assert all(hasattr(world, name) for name in ("preprocess", "postprocess"))
    context, request = testing.context(), testing.request()
    assert world.handle(context._handle, request._handle).body == b"handled"


def test_a_component_of_another_world_has_no_models(monkeypatch):
    from gristmill_plugin import host

    monkeypatch.setattr(host, "models", None)
    with pytest.raises(RuntimeError, match="only a component of the world handler can run models"):
        models.infer("m", {})
