"""The benchmark services on BentoML, with its adaptive batching.

    bentoml serve service:Peer --port 8000

An API that can batch takes a list: a client sends a small batch, here of one, and BentoML joins the batches of
several clients.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import bentoml
import numpy as np
import work
from PIL.Image import Image

BATCHED = {"batchable": True, "max_batch_size": 16, "max_latency_ms": 10_000}


def prepare(function, value):
    """Call the function; a refused request gets 400."""
    try:
        return function(value)
    except work.Refused as refused:
        raise bentoml.exceptions.InvalidArgument(str(refused)) from None


@bentoml.service(
    workers=2,
    traffic={"timeout": 30},
    logging={"access": {"enabled": False}},
    metrics={"enabled": False},
)
class Peer:
    def __init__(self) -> None:
        self.ranker_session = work.load_ranker()
        self.photos_session = work.load_photos()

    @bentoml.api(**BATCHED)
    def ranker(self, requests: list[dict[str, Any]], /) -> list[dict[str, Any]]:
        prepared = [prepare(work.ranker_rows, request) for request in requests]
        output = work.infer(self.ranker_session, np.concatenate([rows for _, rows in prepared]))
        ends = np.cumsum([len(rows) for _, rows in prepared])
        outputs = np.split(output, ends[:-1])
        return [work.ranking(ids, own) for (ids, _), own in zip(prepared, outputs, strict=True)]

    @bentoml.api(**BATCHED)
    def photos(self, images: list[Image]) -> list[dict[str, Any]]:
        rows = np.concatenate([prepare(work.image_row, image) for image in images])
        return [work.classification(logits) for logits in work.infer(self.photos_session, rows)]
