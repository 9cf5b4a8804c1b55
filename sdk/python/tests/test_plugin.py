import logging
import sys
import types
from pathlib import Path

import pytest

from gristmill_plugin import (
    Dtype,
    Internal,
    InvalidInput,
    Outputs,
    Postprocessor,
    Prepared,
    Preprocessor,
    Processor,
    Response,
    Tensor,
    Unprocessable,
    UnsupportedMediaType,
    export,
    log,
    testing,
)


class Both(Processor):
    def preprocess(self, context, request):
        values = request.json()
        shape = [len(values), 1]
        return Prepared({"input": Tensor.from_values(shape, Dtype.FLOAT32, values)}, b"state")

    def postprocess(self, context, outputs, state):
        return Response.json([state.decode(), *outputs.view("output", [None, 1])])


def preprocess_with(function):
    """The server's view of a preprocessor that calls `function`."""

    class Plugin(Preprocessor):
        def preprocess(self, context, request):
            return function()

    return testing.preprocess(Plugin(), testing.context(), testing.request())


def postprocess_with(function):
    class Plugin(Postprocessor):
        def postprocess(self, context, outputs, state):
            return function()

    return testing.postprocess(Plugin(), testing.context(), {})


def raising(error):
    def function():
        raise error

    return function


def test_both_calls_pass_tensors_and_state():
    prepared = testing.preprocess(Both(), testing.context(), testing.request(json=[1, 2]))
    assert list(prepared.inputs["input"].view()) == [1, 2]
    outputs = {"output": prepared.inputs["input"]}
    response = testing.postprocess(Both(), testing.context(), outputs, prepared.state)
    assert (response.status, response.body) == (200, b'["state",1.0,2.0]')


def test_what_the_sdk_refuses_has_the_line_of_the_plugin():
    def line_of(text):
        return Path(__file__).read_text().split("\n").index(text) + 1

    texts = {of_a_set: "return Response.json({1})", missing: 'return outputs["no"]'}
    for function, text in texts.items():
        failed = postprocess_with(lambda function=function: function(Outputs({})))
        assert failed.status == 500
        assert failed.text.endswith(f"test_plugin.py:{line_of('    ' + text)})"), failed.text


def of_a_set(_):
    return Response.json({1})


def missing(outputs):
    return outputs["no"]


@pytest.mark.parametrize(
    ("failure", "status"),
    [(InvalidInput, 400), (UnsupportedMediaType, 415), (Unprocessable, 422), (Internal, 500)],
)
def test_failures_have_their_status(failure, status):
    with testing.captured_log() as lines:
        assert preprocess_with(raising(failure("why"))) == testing.Failed(status, "why")
    assert lines == []


def test_any_other_exception_is_logged_with_its_place():
    def divide():
        return 1 / 0

    with testing.captured_log() as lines:
        failed = preprocess_with(divide)
    [line] = lines
    assert failed.status == 500 and "ZeroDivisionError: division by zero" in failed.text
    assert (line.level, line.message) == ("error", "ZeroDivisionError: division by zero")
    # The host does not log it once more.
    assert line.fields["uncaught"] == "true"
    assert line.fields["file"] == __file__
    assert int(line.fields["line"]) == divide.__code__.co_firstlineno + 1
    assert "in divide" in line.fields["traceback"]


def test_a_fault_that_the_sdk_finds_is_at_the_plugins_line():
    def wrong_shape():
        return Tensor.from_values([1.5], Dtype.FLOAT32, [1])

    with testing.captured_log() as lines:
        preprocess_with(wrong_shape)
    assert lines[0].message == "TypeError: shape is 1.5, not an integer"
    assert lines[0].fields["file"] == __file__
    assert int(lines[0].fields["line"]) == wrong_shape.__code__.co_firstlineno + 1


def test_a_wrong_result_is_at_the_plugins_function():
    class Plugin(Processor):
        def preprocess(self, context, request):
            return None

        def postprocess(self, context, outputs, state):
            return Response(status=99)

    with testing.captured_log() as lines:
        first = testing.preprocess(Plugin(), testing.context(), testing.request())
        second = testing.postprocess(Plugin(), testing.context(), {})
    for failed, line, function in zip(
        (first, second), lines, (Plugin.preprocess, Plugin.postprocess), strict=True
    ):
        place = (__file__, str(function.__code__.co_firstlineno))
        assert (line.fields["file"], line.fields["line"]) == place
        assert failed.text.endswith(f"({place[0]}:{place[1]})")


def test_printed_text_is_logged_at_the_end_of_the_call(monkeypatch):
    def prints():
        print("no end of line", end="")
        return Prepared({})

    monkeypatch.setattr(sys, "stdout", log.Stream("stdout"))
    with testing.captured_log() as lines:
        preprocess_with(prints)
    assert lines == [testing.LogLine("info", "no end of line", {"stream": "stdout"})]


def test_of_a_long_traceback_the_innermost_frames_and_the_message_remain():
    def innermost():
        raise KeyError("the reason " * 200)

    def caused(depth):
        try:
            caused(depth - 1) if depth else innermost()
        except Exception as error:
            raise ValueError(f"at depth {depth}" + "\u00e4" * 900) from error

    with testing.captured_log() as lines:
        preprocess_with(lambda: caused(20))
    traceback = lines[0].fields["traceback"]
    assert 4000 < len(traceback.encode()) <= 8192 and traceback.startswith("[cut]\n")
    assert "ValueError: at depth 20" in traceback.splitlines()[-1]
    assert "in caused" in traceback.splitlines()[-2]
    with testing.captured_log() as lines:
        preprocess_with(innermost)
    last = lines[0].fields["traceback"].splitlines()[-2:]
    assert "in innermost" in last[0] and last[1].endswith(" [cut]")


def test_a_traceback_has_the_source_lines_that_are_known(monkeypatch):
    from gristmill_plugin import tracebacks

    def told() -> str:
        try:
            int("x")  # here
        except ValueError as error:
            return tracebacks.format_exception(error)

    assert "# here" not in told()
    monkeypatch.setitem(tracebacks.sources, __file__, open(__file__).read())
    assert told().splitlines()[-2] == '    int("x")  # here'


def test_a_traceback_shows_causes_and_shortens_recursion():
    def recurse(depth):
        recurse(depth + 1)

    def caused():
        try:
            recurse(0)
        except RecursionError as error:
            raise ValueError("too deep") from error

    with testing.captured_log() as lines:
        preprocess_with(caused)
    traceback = lines[0].fields["traceback"]
    assert "direct cause" in traceback and traceback.endswith("ValueError: too deep")
    assert traceback.index("RecursionError") < traceback.index("direct cause")
    assert "  [Previous line repeated " in traceback
    assert len(traceback.splitlines()) < 20


def test_a_recursion_over_several_functions_is_cut():
    def even(depth):
        odd(depth + 1)

    def odd(depth):
        even(depth + 1)

    with testing.captured_log() as lines:
        preprocess_with(lambda: even(0))
    traceback = lines[0].fields["traceback"]
    assert " frames\n" in traceback and len(traceback.splitlines()) < 50


@pytest.mark.parametrize("ends", [SystemExit(1), KeyboardInterrupt(), MemoryError()])
def test_no_exception_leaves_the_plugin(ends):
    with testing.captured_log() as lines:
        assert preprocess_with(raising(ends)).status == 500
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, "the result of preprocess is NoneType, not Prepared"),
        (Prepared({"input": [1]}), "input 'input' is list, not Tensor"),
        (Prepared({1: None}), "an input's name is int, not str"),
        (Prepared({}, "text"), "the state is str, not bytes"),
    ],
)
def test_a_wrong_result_of_preprocess_is_named(result, text):
    with testing.captured_log():
        assert text in preprocess_with(lambda: result).text


def test_one_tensor_cannot_be_two_inputs():
    def twice():
        tensor = Tensor.from_values([1], Dtype.FLOAT32, [1])
        return Prepared({"a": tensor, "b": tensor})

    with testing.captured_log():
        assert "is the same object as input" in preprocess_with(twice).text


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({}, "the result of postprocess is dict, not Response"),
        (Response("text"), "the response's body is str, not bytes"),
        (Response(status="200"), "the response's status is str, not int"),
        (Response(status=99), "the response's status is 99, not 200 to 599"),
        (Response(content_type=None), "the response's content_type is NoneType, not str"),
        (Response(headers={"x-plugin-a": 1}), "header 'x-plugin-a' is int, not str"),
    ],
)
def test_a_wrong_response_is_named(result, text):
    with testing.captured_log():
        assert text in postprocess_with(lambda: result).text


@pytest.fixture
def module(monkeypatch):
    module = types.ModuleType("a_plugin")
    monkeypatch.setitem(sys.modules, "a_plugin", module)
    return module


def test_export_makes_the_class_that_componentize_py_wants(module):
    class Pre(Preprocessor):
        def preprocess(self, context, request):
            return Prepared({})

    Pre.__module__ = "a_plugin"
    assert export(Pre) is Pre
    world = module.WitWorld()
    assert hasattr(world, "preprocess") and not hasattr(world, "postprocess")
    request, context = testing.request(), testing.context()
    assert world.preprocess(context._handle, request._handle).inputs == []


def test_a_module_exports_one_plugin(module):
    Both.__module__ = "a_plugin"
    export(Both)
    with pytest.raises(TypeError, match="a_plugin exports Both already"):
        export(Both)


def test_only_a_plugin_can_be_exported(module):
    with pytest.raises(TypeError, match="Plain is not a Processor"):
        export(type("Plain", (), {"__module__": "a_plugin"}))
    with pytest.raises(TypeError, match="preprocess"):
        export(type("Half", (Preprocessor,), {"__module__": "a_plugin"}))


def test_log_lines_have_level_message_and_fields():
    with testing.captured_log() as lines:
        log.trace("t")
        log.debug("d")
        log.info("hashed", texts=3, half="\ud800")
        log.warning("w")
        log.error("e")
    assert [line.level for line in lines] == ["trace", "debug", "info", "warn", "error"]
    assert lines[2] == testing.LogLine("info", "hashed", {"texts": "3", "half": "?"})


def test_an_uncaptured_line_goes_to_stderr(capsys):
    log.info("hashed", texts=3)
    assert capsys.readouterr().err == "INFO  hashed texts='3'\n"


def test_the_standard_logging_module_has_a_handler():
    logger = logging.Logger("mine")
    logger.addHandler(log.Handler())
    with testing.captured_log() as lines:
        logger.warning("%d texts", 3)
        try:
            {}["x"]
        except KeyError:
            logger.exception("failed")
        logger.info("%d", "not a number")
    assert (lines[0].level, lines[0].message) == ("warn", "3 texts")
    assert (lines[0].fields["logger"], lines[0].fields["file"]) == ("mine", __file__)
    assert lines[1].level == "error" and "KeyError: 'x'" in lines[1].fields["traceback"]
    assert "cannot be written" in lines[2].message


def test_a_stream_logs_whole_lines():
    stream = log.Stream("stderr")
    with testing.captured_log() as lines:
        print("a", 1, file=stream)
        print("b\nc", end="", file=stream)
        assert [line.message for line in lines] == ["a 1", "b"]
        stream.flush()
    assert [line.message for line in lines] == ["a 1", "b", "c"]
    assert {(line.level, line.fields["stream"]) for line in lines} == {("warn", "stderr")}
