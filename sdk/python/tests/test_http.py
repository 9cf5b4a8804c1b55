import re

import pytest

from gristmill_plugin import Blob, Dtype, Handler, Internal, Response, Tensor, http, testing


def echo(asked):
    told = {
        "method": asked.method,
        "url": asked.url,
        "headers": dict(asked.headers),
        "body": asked.body.decode(),
        "timeout": asked.timeout,
    }
    return Response.json(told, headers={"X-Of": "service"})


ORIGIN = "https://api.example.com"


def test_a_service_answers():
    with testing.service(ORIGIN, echo):
        answer = http.get(f"{ORIGIN}/a", headers={"x-own": "7"}, timeout=0.25)
        assert (answer.status_code, answer.ok) == (200, True)
        assert answer.headers["x-of"] == "service"
        assert answer.headers["content-type"] == "application/json"
        assert answer.json() == {
            "method": "GET",
            "url": f"{ORIGIN}/a",
            "headers": {"x-own": "7"},
            "body": "",
            "timeout": 0.25,
        }
        assert answer.content.startswith(b"{")
        assert answer.text == answer.content.decode()
        assert len(answer.body) == len(answer.content)
        assert answer.raise_for_status() is answer
    with pytest.raises(http.NotGranted, match="testing.service"):
        http.get(f"{ORIGIN}/a")


def test_a_body_is_bytes_a_text_a_blob_or_json():
    with testing.service(ORIGIN, echo):
        for data in (b"abc", "abc", Blob.from_bytes(b"abc")):
            found = http.post(ORIGIN, data=data).json()
            assert (found["method"], found["body"], found["headers"]) == ("POST", "abc", {})
        rows = Tensor.from_values([2], Dtype.FLOAT32, [0.5, 2])
        found = http.request("put", ORIGIN, json={"rows": rows}).json()
        assert (found["method"], found["body"]) == ("PUT", '{"rows":[0.5,2.0]}')
        assert found["headers"] == {"content-type": "application/json"}
        own = http.post(ORIGIN, json=[], headers={"Content-Type": "application/x-own"})
        assert own.json()["headers"] == {"content-type": "application/x-own"}
        with pytest.raises(TypeError, match="one body"):
            http.post(ORIGIN, data=b"", json=1)


def test_a_url_is_written_with_its_parameters():
    with testing.service(ORIGIN, echo):
        for path, params, expected in (
            ("/x", {"q": "a b&c", "n": 7}, "/x?q=a%20b%26c&n=7"),
            ("/x?y=1#end", [("q", "ä"), ("q", "b")], "/x?y=1&q=%C3%A4&q=b#end"),
            ("/größe 1", {}, "/gr%C3%B6%C3%9Fe%201"),
            ("/a%20b", {}, "/a%20b"),
        ):
            found = http.get(ORIGIN + path, params=params)
            assert found.json()["url"] == ORIGIN + expected


def test_what_goes_wrong_is_an_error_of_its_own():
    for kind in (
        http.NotGranted,
        http.InvalidArgument,
        http.ProhibitedAddress,
        http.ConnectionFailed,
        http.TimedOut,
        http.TooLarge,
    ):

        def fail(asked, kind=kind):
            raise kind("as told")

        with testing.service(ORIGIN, fail), pytest.raises(kind, match="as told") as caught:
            http.get(ORIGIN)
        assert isinstance(caught.value, http.HttpError)
        assert isinstance(caught.value, Internal)
    with testing.service(ORIGIN, lambda asked: Response.text("no", status=404)):
        missing = http.get(f"{ORIGIN}/missing")
        assert (missing.status_code, missing.ok, missing.text) == (404, False, "no")
        with pytest.raises(http.StatusError, match="the service answered 404"):
            missing.raise_for_status()
        with pytest.raises(http.HttpError, match="not JSON"):
            missing.json()


def test_arguments_are_checked():
    with testing.service(ORIGIN, echo):
        for wrong in (lambda: http.get(7), lambda: http.get(ORIGIN, headers={"a": 7})):
            with pytest.raises(TypeError):
                wrong()
        for timeout in (0, -1, float("nan"), float("inf")):
            with pytest.raises(ValueError, match="timeout"):
                http.get(ORIGIN, timeout=timeout)


def test_only_urls_of_the_origin_reach_a_service():
    with testing.service(ORIGIN, echo):
        for url in (f"{ORIGIN}.evil.test/", "http://api.example.com/", f"{ORIGIN}:8443/"):
            with pytest.raises(http.NotGranted):
                http.get(url)


def test_a_handler_that_gets_no_answer_fails_with_the_reason():
    class Rates(Handler):
        def handle(self, context, request):
            return Response.json(http.get(f"{ORIGIN}/rates").raise_for_status().json())

    def call():
        return testing.handle(Rates(), testing.context(), testing.request())

    with testing.service(ORIGIN, lambda asked: Response.json({"eur": 1.1})):
        assert call().body == b'{"eur":1.1}'
    with testing.service(ORIGIN, lambda asked: Response(status=503)):
        # The SDK's own failure has the line of the plugin.
        failed = call()
        assert failed.status == 500
        assert re.fullmatch(r"the service answered 503 \(.*test_http.py:\d+\)", failed.text)
    assert call().status == 500
