"""The benchmark services on LitServe, with its dynamic batching.

    python app.py ranker --port 8000       # or photos
"""

import argparse
import sys
from pathlib import Path
from typing import Annotated

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import litserve
import numpy as np
import orjson
import work
from fastapi import Body, HTTPException, Response

# A batch is closed when it is full or this old, whichever comes first.
BATCH_TIMEOUT_S = 0.002


def prepare(function, *arguments):
    """Call the function; a refused request gets 400."""
    try:
        return function(*arguments)
    except work.Refused as refused:
        raise HTTPException(400, str(refused)) from None


def to_json(value) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")


class Ranker(litserve.LitAPI):
    def setup(self, device):
        self.session = work.load_ranker()

    def decode_request(self, request):
        return prepare(work.ranker_rows, request)

    def batch(self, inputs):
        return [ids for ids, _ in inputs], [rows for _, rows in inputs]

    def predict(self, batch):
        ids, rows = batch
        output = work.infer(self.session, np.concatenate(rows))
        ends = np.cumsum([len(own) for own in rows])
        return list(zip(ids, np.split(output, ends[:-1]), strict=True))

    def unbatch(self, output):
        return output

    def encode_response(self, output) -> Response:
        return to_json(work.ranking(*output))


class Photos(litserve.LitAPI):
    def setup(self, device):
        self.session = work.load_photos()

    # LitServe reads JSON and forms by itself. With this type the body comes as it was sent.
    def decode_request(self, request: Annotated[bytes, Body(media_type="image/jpeg")]):
        return prepare(work.photo_row, request)

    def batch(self, inputs):
        return np.concatenate(inputs)

    def predict(self, batch):
        return work.infer(self.session, batch)

    def unbatch(self, output):
        return list(output)

    def encode_response(self, output) -> Response:
        return to_json(work.classification(output))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("service", choices=["ranker", "photos"])
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    kind = {"ranker": Ranker, "photos": Photos}[arguments.service]
    api = kind(max_batch_size=16, batch_timeout=BATCH_TIMEOUT_S, api_path=f"/{arguments.service}")
    server = litserve.LitServer(api, accelerator="cpu", devices=1, workers_per_device=2, fast_queue=True)
    server.run(
        host="127.0.0.1",
        port=arguments.port,
        num_api_servers=2,
        log_level="warning",
        generate_client_file=False,
        access_log=False,
    )


if __name__ == "__main__":
    main()
