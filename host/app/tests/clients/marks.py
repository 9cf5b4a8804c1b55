"""Markers of cases that are not for all libraries of tritonclient."""

import pytest

# Cases that need JSON tensors or paths, and cases that need streams or deadlines.
over_http = pytest.mark.libraries("tritonclient.http", "tritonclient.http.aio")
over_grpc = pytest.mark.libraries("tritonclient.grpc", "tritonclient.grpc.aio")

# Cases that speak to the server without a library: each runs once.
once_over_http = pytest.mark.libraries("tritonclient.http")
once_over_grpc = pytest.mark.libraries("tritonclient.grpc")

changes_the_server = pytest.mark.changes_the_server
