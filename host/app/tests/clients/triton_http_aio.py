"""tritonclient.http.aio."""

import tritonclient.http.aio as triton
from cases import COMMON, OVER_HTTP, gathered
from clients import HTTP, HttpLibrary, run


class Library(HttpLibrary):
    infer_many = gathered


run(lambda: Library(triton, triton.InferenceServerClient(HTTP)), OVER_HTTP + COMMON)
