"""An S3 server for tests: moto's, in a process of its own.

It answers one call at a time, because moto looks for an object and writes it in two steps: without
that two conditional writes could both succeed, as on no real S3. It prints its port. With two
arguments, the files of a certificate and of its key, it answers over TLS.
"""

import io
import sys
import threading

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

moto = DomainDispatcherApplication(create_backend_app)
turn = threading.Lock()


def answer(environ, start_response):
    # A client that is slow holds up no other one.
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(length)
    if len(body) < length:
        start_response("400 Bad Request", [("Content-Length", "0")])
        return []
    environ["wsgi.input"] = io.BytesIO(body)
    with turn:
        return list(moto(environ, start_response))


class Quiet(WSGIRequestHandler):
    def log(self, *_):
        pass


server = make_server(
    "127.0.0.1",
    0,
    answer,
    threaded=True,
    request_handler=Quiet,
    ssl_context=tuple(sys.argv[1:]) or None,
)
print(server.port, flush=True)
server.serve_forever()
