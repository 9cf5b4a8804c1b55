"""The server of the cases. `it/oip/clients.rs` has put on it: the tenant `acme` with the models
of `GRANTED` and the pipelines of `PIPELINES`, a tenant `other` with those of `OTHERS`, and a model `digits` that is
granted to nobody.
"""

import asyncio
import json
import os
import ssl
import time
from collections.abc import Mapping
from email.message import Message
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

from values import NUMPY_TYPES

HTTP = os.environ["GRISTMILL_HTTP"]
GRPC = os.environ["GRISTMILL_GRPC"]
ADMIN = os.environ["GRISTMILL_ADMIN"]
KEY = os.environ["GRISTMILL_KEY"]
OTHERS_KEY = os.environ["GRISTMILL_OTHERS_KEY"]
ADMIN_TOKEN = os.environ["GRISTMILL_ADMIN_TOKEN"]
NOBODYS = "no-such-key-anywhere"
# The authority of the server's certificate, if the server speaks TLS.
CA_FILE = os.environ.get("GRISTMILL_CA_FILE")
# The options with which the clients of gRPC speak it.
GRPC_TLS: dict[str, Any] = {"ssl": True, "root_certificates": CA_FILE} if CA_FILE else {}

# `waits` is the ranker. It waits for a second request for a minute, or for as long as a request
# allows. Each of its two levels queues one request; the second level is the default. `configured`
# is the ranker, too.
GRANTED = {f"identity-{datatype.lower()}" for datatype in NUMPY_TYPES}
GRANTED |= {"configured", "fixed-rows", "look-up", "ranker", "simple", "waits"}
OTHERS = {"identity-int64", "ranker"}
# This one has named inputs and outputs: a row of `INPUT_IMAGE`, in base64, becomes `DIGIT` and
# `PROBABILITY`.
NAMED = "digit_classifier"
PIPELINES = {"pipeline:digits", "pipeline:ranker", f"pipeline:{NAMED}"}

# The longest wait for a condition.
PATIENCE_S = 60


def bearer(key: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def grpc_channel() -> Any:
    """A channel to the server without a library of its protocol."""
    import grpc

    if not CA_FILE:
        return grpc.insecure_channel(GRPC)
    authority = Path(CA_FILE).read_bytes()
    return grpc.secure_channel(GRPC, grpc.ssl_channel_credentials(authority))


def send(
    method: str,
    path: str,
    body: bytes | str | None = None,
    headers: Mapping[str, str] = {},
    host: str = HTTP,
    key: str = KEY,
) -> tuple[int, Message, bytes]:
    """Send a request without a library. Returns the status, headers and body of the answer."""
    connection: HTTPConnection
    if CA_FILE:
        context = ssl.create_default_context(cafile=CA_FILE)
        connection = HTTPSConnection(host, timeout=PATIENCE_S, context=context)
    else:
        connection = HTTPConnection(host, timeout=PATIENCE_S)
    try:
        connection.request(method, path, body, {**bearer(key), **headers})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def post(path: str, body: bytes | str, **headers: str) -> tuple[int, Message, bytes]:
    """Send a `POST` in the same way. Underscores in the names of headers stand for hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return send("POST", path, body, named)


def administer(method: str, path: str, body: bytes | str | None = None) -> Any:
    """The admin API's answer."""
    status, _, answer = send(method, f"/admin/v1/{path}", body, host=ADMIN, key=ADMIN_TOKEN)
    assert status == 200, answer
    return json.loads(answer)


def lane(model: str) -> dict[str, Any]:
    """The figures of the model's batcher from the admin API."""
    return administer("GET", "status")["models"][model]["statistics"]


async def until(model: str, **counted: int) -> None:
    """Wait until a counter of the model's batcher has this value."""
    began = time.monotonic()
    while not counted.items() <= lane(model).items():
        assert time.monotonic() - began < PATIENCE_S, lane(model)
        # Let asynchronous libraries work.
        await asyncio.sleep(0.002)
