"""Requests that wait for a batch."""

from libraries import GrpcLibrary, HttpLibrary, Library, error_of
from marks import once_over_http, over_grpc
from server import lane, post, until
from values import features


async def test_a_request_is_queued_no_longer_than_its_timeout(library: Library) -> None:
    inputs = [library.input("input", features(1))]
    await library.refused((503, 504), "infer", "waits", inputs, timeout=1000)


async def test_what_is_given_up_leaves_the_queue(library: Library) -> None:
    before = lane("waits")
    async with library.under_way("waits", features(1)):
        await until("waits", queued_rows=1)
    await until("waits", queued_rows=0, fail=before["fail"] + 1, batches=before["batches"])


async def test_a_full_queue_refuses_further_requests(library: Library) -> None:
    inputs = [library.input("input", features(1))]
    before = lane("waits")
    async with library.under_way("waits", features(1)):
        await until("waits", queued_rows=1)
        # The first level has room, and so has a batch of two. These requests are of the default
        # level, which is full.
        for priority in (0, 2, 9):
            message = await library.refused(503, "infer", "waits", inputs, priority=priority)
            # Triton's clients look for these words.
            assert message.startswith("Exceeds maximum queue size"), message
            assert "level is full: 1 of 1 requests" in message, message
        assert lane("waits")["queued_rows"] == 1
    await until("waits", fail=before["fail"] + 4, batches=before["batches"])


@once_over_http
async def test_a_full_queue_says_when_to_come_back(library: HttpLibrary) -> None:
    async with library.under_way("waits", features(1)):
        await until("waits", queued_rows=1)
        answer = post(
            "/v2/models/waits/infer", features(1).tobytes(), inference_header_content_length="0"
        )
        assert "1 of 1 requests" in error_of(answer, 503) and answer[1]["retry-after"] == "1", answer
    await until("waits", queued_rows=0)


@over_grpc
async def test_a_deadline_reaches_the_batcher(library: GrpcLibrary) -> None:
    inputs = [library.input("input", features(1))]
    # The client does not check the second one: the answer is the server's.
    for deadline in ({"client_timeout": 0.05}, {"headers": {"grpc-timeout": "50m"}}):
        before = lane("waits")
        message = await library.refused(504, "infer", "waits", inputs, **deadline)
        await until("waits", queued_rows=0, fail=before["fail"] + 1, batches=before["batches"])
    assert message.startswith("no answer within "), message
