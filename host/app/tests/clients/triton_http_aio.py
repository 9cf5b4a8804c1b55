"""tritonclient.http.aio."""

import tritonclient.http.aio as triton
from cases import COMMON, OVER_HTTP, gathered, in_a_task
from clients import HTTP, HttpLibrary, run


class Library(HttpLibrary):
    infer_many = gathered
    under_way = in_a_task


run(lambda: Library(triton, triton.InferenceServerClient(HTTP)), OVER_HTTP + COMMON)
