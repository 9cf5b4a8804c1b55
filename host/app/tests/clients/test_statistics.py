"""The statistics of models."""

from typing import Any

import numpy as np

from libraries import Library
from server import ADMIN_TOKEN, GRANTED, KEY, OTHERS_KEY, PIPELINES
from values import features


async def statistics_of(
    library: Library, model: str, key: str = KEY
) -> tuple[dict[str, Any], dict[str, int], int, int]:
    """The model's statistics; of them the counts of requests by name, and those of rows and runs."""
    document = await library.document("get_inference_statistics", model, key=key)
    [statistics] = document["model_stats"]
    assert statistics["name"] == model
    durations = statistics["inference_stats"]
    counts = {name: int(durations[name]["count"]) for name in durations}
    batches = {
        int(batch["batch_size"]): int(batch["compute_infer"]["count"])
        for batch in statistics["batch_stats"]
    }
    rows, runs = int(statistics["inference_count"]), int(statistics["execution_count"])
    assert sum(size * count for size, count in batches.items()) == rows, statistics
    assert sum(batches.values()) == runs, statistics
    return statistics, counts, rows, runs


async def test_statistics_count_every_request_and_row(library: Library) -> None:
    await library.infer("ranker", features(1))
    before, counts, rows, runs = await statistics_of(library, "ranker")
    for size in (1, 5, 1, 5, 1):
        await library.infer("ranker", features(size))
    statistics, after, rows_after, runs_after = await statistics_of(library, "ranker")
    assert rows_after - rows == 13 and runs_after - runs == 5, statistics
    for name in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
        assert after[name] - counts[name] == 5, (name, statistics)

    def grown(name: str) -> int:
        return int(statistics["inference_stats"][name]["ns"]) - int(
            before["inference_stats"][name]["ns"]
        )

    # Each request ran in one batch, so that its parts fit in all of its time.
    parts = [grown(name) for name in ("queue", "compute_input", "compute_infer", "compute_output")]
    assert grown("compute_infer") > 0, (before, statistics)
    assert sum(parts) <= grown("success"), (before, statistics)
    assert int(statistics["last_inference"]) > 1_600_000_000_000, statistics
    for name in ("cache_hit", "cache_miss"):
        assert after[name] == 0, statistics


async def test_statistics_name_what_the_tenant_may_use(library: Library) -> None:
    every = (await library.document("get_inference_statistics"))["model_stats"]
    assert {statistics["name"] for statistics in every} == GRANTED | PIPELINES, every


async def test_statistics_are_the_tenants_own(library: Library) -> None:
    callers = (KEY, OTHERS_KEY, ADMIN_TOKEN)
    before = [await statistics_of(library, "ranker", key) for key in callers]
    for key, sizes in ((KEY, (2, 2, 2)), (OTHERS_KEY, (5,))):
        for size in sizes:
            await library.infer("ranker", features(size), key=key)
    after = [await statistics_of(library, "ranker", key) for key in callers]
    grown = [
        (now[1]["success"] - then[1]["success"], now[2] - then[2])
        for then, now in zip(before, after, strict=True)
    ]
    # Of requests and rows; the administrator is told of all.
    assert grown == [(3, 6), (1, 5), (4, 11)], after


async def test_what_a_model_fails_at_fails_alone(library: Library) -> None:
    _, before, *_ = await statistics_of(library, "look-up")
    outside = [library.input("input", np.array([[1], [4]]))]
    assert "out of data bounds" in await library.refused(400, "infer", "look-up", outside)
    result = await library.infer("look-up", np.array([[3], [0]]))
    assert (result.as_numpy("output") == [[30], [0]]).all()
    statistics, after, *_ = await statistics_of(library, "look-up")
    for name in ("success", "fail"):
        assert after[name] - before[name] == 1, (name, statistics)
    assert int(statistics["inference_stats"]["fail"]["ns"]) > 0, statistics
