"""MLPerf's LoadGen, server scenario: queries of one row of the model `ranker` at random times, with a bound on the
99th percentile of the latency. First for ONNX Runtime in this process, then for a server over HTTP.

    python benches/loadgen/server.py models/ranker/ranker.onnx http://127.0.0.1:8080/v2/models/ranker [QUERIES_A_SECOND]

Prints a JSON object a line for each of both: whether LoadGen calls the run valid, and its figures.
"""

import http.client
import json
import queue
import sys
import tempfile
import threading
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import mlperf_loadgen as loadgen
import numpy as np
import onnxruntime

WIDTH = 32
SAMPLES = 1024
SEED = 5
THREADS = 8
SECONDS = 20
LATENCY_NS = 15_000_000

# Runs one row. Each thread has its own.
Runner = Callable[[np.ndarray], object]


def in_process(path: str) -> Callable[[], Runner]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: lambda row: session.run(None, {"input": row})


def over_http(url: str) -> Callable[[], Runner]:
    parts = urllib.parse.urlsplit(url)

    def connect() -> Runner:
        connection = http.client.HTTPConnection(parts.netloc, timeout=30)

        def run(row: np.ndarray) -> object:
            data = row.tobytes()
            tensor = {"name": "input", "datatype": "FP32", "shape": list(row.shape)}
            tensor["parameters"] = {"binary_data_size": len(data)}
            head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
            headers = {"inference-header-content-length": str(len(head))}
            connection.request("POST", parts.path + "/infer", head + data, headers)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{answer.status}: {body[:300]!r}")
            return body

        return run

    return connect


class System:
    """The system under test: threads that take queries in their order."""

    def __init__(self, rows: np.ndarray, make: Callable[[], Runner]) -> None:
        self.rows, self.queries, self.errors = rows, queue.SimpleQueue(), []
        self.threads = [threading.Thread(target=self.work, args=(make(),)) for _ in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def work(self, run: Runner) -> None:
        while (query := self.queries.get()) is not None:
            try:
                run(self.rows[query.index : query.index + 1])
            except Exception as error:
                self.errors.append(str(error))
            loadgen.QuerySamplesComplete([loadgen.QuerySampleResponse(query.id, 0, 0)])

    def issue(self, samples: list) -> None:
        for sample in samples:
            self.queries.put(sample)

    def end(self) -> None:
        for _ in self.threads:
            self.queries.put(None)
        for thread in self.threads:
            thread.join()


def measure(name: str, make: Callable[[], Runner], rate: float) -> dict:
    rows = np.random.default_rng(SEED).standard_normal((SAMPLES, WIDTH)).astype(np.float32)
    system = System(rows, make)
    settings = loadgen.TestSettings()
    settings.scenario = loadgen.TestScenario.Server
    settings.mode = loadgen.TestMode.PerformanceOnly
    settings.server_target_qps = rate
    settings.server_target_latency_ns = LATENCY_NS
    settings.min_duration_ms = settings.max_duration_ms = SECONDS * 1000
    settings.min_query_count = 1
    with tempfile.TemporaryDirectory() as folder:
        log = loadgen.LogSettings()
        log.log_output.outdir = folder
        under_test = loadgen.ConstructSUT(system.issue, lambda: None)
        samples = loadgen.ConstructQSL(SAMPLES, SAMPLES, lambda _: None, lambda _: None)
        loadgen.StartTestWithLogSettings(under_test, samples, settings, log)
        loadgen.DestroyQSL(samples)
        loadgen.DestroySUT(under_test)
        summary = (Path(folder) / "mlperf_log_summary.txt").read_text()
    system.end()
    lines = (line.split(" : ", 1) for line in summary.splitlines() if " : " in line)
    figures = {key.strip(): value.strip() for key, value in lines}
    return {
        "what": name,
        "valid": figures.get("Result is") == "VALID" and not system.errors,
        "completed_per_s": float(figures.get("Completed samples per second", "nan")),
        "p99_ms": float(figures.get("99.00 percentile latency (ns)", "nan")) / 1e6,
        "errors": system.errors[:3],
    }


def main() -> None:
    model, url = sys.argv[1:3]
    rate = float(sys.argv[3]) if len(sys.argv) > 3 else 500.0
    for name, make in (("ONNX Runtime in the process", in_process(model)), ("Gristmill over HTTP", over_http(url))):
        print(json.dumps(measure(name, make, rate)), flush=True)


if __name__ == "__main__":
    main()
