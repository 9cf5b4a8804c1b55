"""What every tritonclient library is asked to do. The server it speaks to is set up by `oip_clients.rs`:
the tenant `acme` with the models of `GRANTED` and the pipelines `digits` and `ranker`, a tenant `other`
with those of `OTHERS`, and a model `digits` that is granted to nobody.

A case is a function of a `Library`; those in `OVER_HTTP` need JSON tensors or paths, those in `OVER_GRPC`
deadlines.
"""

import asyncio
import base64
import json
import time
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path

import ml_dtypes
import numpy as np

from clients import ADMIN_TOKEN, KEY, OTHERS_KEY, administer

MODELS = Path(__file__).parents[4] / "models"
FIXTURES = Path(__file__).parents[1] / "fixtures"

NUMPY_TYPES = {
    "BOOL": np.bool_,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "FP32": np.float32,
    "FP64": np.float64,
    "BYTES": np.object_,
}
# These have no JSON form.
BINARY_ONLY = {"FP16", "BF16"}
TEXTS = ["", "a", "grüße €😀", 'quote " backslash \\ newline \n tab \t', "\u2028\u007f", "x" * 300]

# `waits` is the ranker, waiting for a second request for a minute, or for as long as a request allows; each
# of its two levels queues one request, the second is the default. `configured` is the ranker, too.
GRANTED = {f"identity-{datatype.lower()}" for datatype in NUMPY_TYPES}
GRANTED |= {"configured", "fixed-rows", "look-up", "ranker", "simple", "waits"}
OTHERS = {"identity-int64", "ranker"}
PIPELINES = {"pipeline:digits", "pipeline:ranker"}
NOBODYS = "no-such-key-anywhere"

COMMON, OVER_HTTP, OVER_GRPC = [], [], []


def common(case):
    COMMON.append(case)
    return case


def over_http(case):
    OVER_HTTP.append(case)
    return case


def over_grpc(case):
    OVER_GRPC.append(case)
    return case


def edges(datatype, finite=False):
    """A row with the values at a datatype's edges."""
    numpy_type = NUMPY_TYPES[datatype]
    if datatype == "BOOL":
        values = [True, False, True, True]
    elif datatype == "BYTES":
        values = TEXTS
    elif np.issubdtype(numpy_type, np.integer):
        info = np.iinfo(numpy_type)
        values = [info.min, info.max, 0, 1, info.max // 2]
    else:
        info = ml_dtypes.finfo(numpy_type)
        values = [info.min, info.max, info.tiny, info.smallest_subnormal, 0.0, -0.0, 1 / 3]
        values += [] if finite else [float("nan"), float("inf"), float("-inf")]
    return np.array(values, dtype=numpy_type)


def batches(datatype, **options):
    """Batches of 1 and of 5 rows, and such that do not lie in memory row by row."""
    row = edges(datatype, **options)
    five = np.stack([np.roll(row, index) for index in range(5)])
    return [five[:1], five, five[::2, ::-1], np.asfortranarray(five)]


def features(rows):
    return np.linspace(-1, 1, rows * 32, dtype=np.float32).reshape(rows, 32)


def flat(array):
    """Elements that compare as they are, bit by bit."""
    if array.dtype == np.object_:
        return [e.encode() if isinstance(e, str) else e for e in array.flatten()]
    return array.tobytes()


def assert_same(result, sent):
    got = result.as_numpy("output")
    assert got.shape == sent.shape and got.dtype == sent.dtype, (got, sent)
    assert flat(got) == flat(sent), (got, sent)


def answer_of(result):
    """A pipeline's answer."""
    answer = result.as_numpy("RESPONSE")
    assert answer.shape == (1,), answer
    return json.loads(answer[0])


def picture(digit):
    return np.array([(MODELS / f"digits/samples/{digit}.png").read_bytes()], dtype=np.object_)


def ranking():
    return np.array([json.dumps({"items": [{"id": "a", "features": [0.5] * 32}]})], dtype=np.object_)


def dims(tensor):
    return [int(size) for size in tensor["shape"]]


def lane(model):
    """What the model's batcher did, as the admin API tells it."""
    return administer("GET", "status")["models"][model]["statistics"]


async def until(model, **counted):
    """Wait until the model's batcher has counted this."""
    began = time.monotonic()
    while not counted.items() <= lane(model).items():
        assert time.monotonic() - began < 60, lane(model)
        # An asynchronous library goes on here.
        await asyncio.sleep(0)


# Health and description.


@common
async def health_needs_no_key(library):
    assert await library.call("is_server_live", key=None) is True
    assert await library.call("is_server_ready", key=None) is True


@common
async def the_server_says_what_it_can(library):
    document = await library.document("get_server_metadata")
    assert document["name"] and document["version"], document
    extensions = set(document["extensions"])
    offered = {"model_configuration", "model_repository", "statistics"}
    offered |= {"binary_tensor_data"} if library.protocol == "http" else set()
    assert offered <= extensions, extensions
    refused = {"system_shared_memory", "cuda_shared_memory", "classification", "sequence", "trace"}
    assert not refused & extensions, extensions


@common
async def models_say_what_they_take(library):
    for datatype in NUMPY_TYPES:
        name = f"identity-{datatype.lower()}"
        assert await library.ready(name)
        document = await library.document("get_model_metadata", name)
        assert document["name"] == name and document["platform"], document
        for tensors, tensor in (("inputs", "input"), ("outputs", "output")):
            [tensors] = document[tensors]
            assert (tensors["name"], tensors["datatype"]) == (tensor, datatype), document
            assert dims(tensors) == [-1, -1], document
    document = await library.document("get_model_metadata", "ranker")
    assert (dims(document["inputs"][0]), dims(document["outputs"][0])) == ([-1, 32], [-1, 1])


@common
async def models_say_how_they_are_configured(library):
    document = await library.document("get_model_config", "ranker")
    document = document.get("config", document)
    assert document["name"] == "ranker" and int(document["max_batch_size"]) > 1, document
    assert "dynamic_batching" in document and "sequence_batching" not in document, document
    assert document["platform"] or document["backend"], document
    # As Triton has it, without the dimension of the batch.
    for tensors, name, sizes in (("input", "input", [32]), ("output", "output", [1])):
        [tensor] = document[tensors]
        assert (tensor["name"], tensor["data_type"]) == (name, "TYPE_FP32"), document
        assert [int(size) for size in tensor["dims"]] == sizes, document


@common
async def a_configuration_is_told_in_tritons_words(library):
    document = await library.document("get_model_config", "configured")
    # gRPC's messages have 64-bit numbers as texts, and numbers as keys.
    document = json.loads(json.dumps(document.get("config", document)))
    batching, [group] = document["dynamic_batching"], document["instance_group"]
    assert document["max_batch_size"] == 16 and group["count"] == 2, document
    assert (group["name"], group["kind"]) == ("configured", "KIND_CPU"), document
    assert batching["preferred_batch_size"] == [4, 8], batching
    numbers = ("max_queue_delay_microseconds", "priority_levels", "default_priority_level")
    assert [int(batching[name]) for name in numbers] == [1500, 3, 3], batching
    # Action, timeout, whether a request may shorten it, and requests: the first level's own, and the default.
    policies = {
        level: (
            policy["timeout_action"],
            int(policy["default_timeout_microseconds"]),
            policy["allow_timeout_override"],
            policy["max_queue_size"],
        )
        for level, policy in batching["priority_queue_policy"].items()
    }
    default = ("DELAY", 5_000_000, False, 0)
    assert policies == {"1": ("REJECT", 0, True, 7), "2": default, "3": default}, batching


@common
async def a_model_of_fixed_rows_is_not_batched(library):
    document = await library.document("get_model_metadata", "fixed-rows")
    assert [dims(tensor) for tensor in document["inputs"] + document["outputs"]] == [[2, 3]] * 2
    document = await library.document("get_model_config", "fixed-rows")
    document = document.get("config", document)
    assert int(document["max_batch_size"]) == 0 and "dynamic_batching" not in document, document
    for tensor in document["input"] + document["output"]:
        assert [int(size) for size in tensor["dims"]] == [2, 3], document
    for rows in (1, 3, 4):
        inputs = [library.input("input", np.ones((rows, 3), dtype=np.float32))]
        assert "2, 3" in await library.refused(400, "infer", "fixed-rows", inputs)
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert_same(await library.infer("fixed-rows", rows), rows)


@common
async def a_model_has_the_version_of_its_release(library):
    [version] = (await library.document("get_model_metadata", "ranker"))["versions"]
    assert int(version) > 0
    assert await library.ready("ranker", version)
    assert (await library.document("get_model_metadata", "ranker", version))["name"] == "ranker"
    assert await library.document("get_model_config", "ranker", version)
    statistics = await library.document("get_inference_statistics", "ranker", version)
    assert [own["version"] for own in statistics["model_stats"]] == [version]
    result = await library.infer("ranker", features(1), model_version=version)
    response = library.response(result)
    assert (response["model_name"], response["model_version"]) == ("ranker", version)
    for wrong in (str(int(version) + 1000), "0", "latest", f"0{version}"):
        assert not await library.ready("ranker", wrong)
        for method in ("get_model_metadata", "get_model_config", "get_inference_statistics"):
            await library.refused(404, method, "ranker", wrong)
        inputs = [library.input("input", features(1))]
        await library.refused(404, "infer", "ranker", inputs, model_version=wrong)


async def entries_of(library, key=KEY):
    index = await library.document("get_model_repository_index", key=key)
    return index if library.protocol == "http" else index["models"]


async def index_of(library):
    return {model["name"]: model for model in await entries_of(library)}


@common
async def the_index_lists_what_the_tenant_may_use(library):
    index = await index_of(library)
    assert set(index) == GRANTED | PIPELINES, sorted(index)
    assert all(model["state"] == "READY" for model in index.values()), index
    [version] = (await library.document("get_model_metadata", "ranker"))["versions"]
    assert index["ranker"]["version"] == version


@common
async def each_tenant_sees_its_own_models(library):
    for key, names in ((OTHERS_KEY, OTHERS), (ADMIN_TOKEN, GRANTED | {"digits"})):
        assert {model["name"] for model in await entries_of(library, key)} == names
        every = (await library.document("get_inference_statistics", key=key))["model_stats"]
        assert {statistics["name"] for statistics in every} == names, every
    inputs = [library.input("input", features(1))]
    await library.refused(404, "infer", "identity-fp32", inputs, key=OTHERS_KEY)
    await library.refused(404, "infer", "pipeline:ranker", inputs, key=OTHERS_KEY)
    await library.refused(404, "get_model_metadata", "waits", key=OTHERS_KEY)
    # The administrator sees everything and runs nothing.
    await library.refused(403, "infer", "ranker", inputs, key=ADMIN_TOKEN)


# Inference.


@common
async def several_inputs_and_outputs_go_by_their_names(library):
    document = await library.document("get_model_metadata", "simple")
    both, turned = ["OUTPUT0", "OUTPUT1"], ["OUTPUT1", "OUTPUT0"]
    for tensors, names in (("inputs", ["INPUT0", "INPUT1"]), ("outputs", both)):
        assert [tensor["name"] for tensor in document[tensors]] == names, document
    one, two = (np.arange(48, dtype=np.int32).reshape(3, 16) * factor for factor in (1, 1000))
    expected = {"OUTPUT0": one + two, "OUTPUT1": one - two}
    inputs = [library.input("INPUT0", one), library.input("INPUT1", two)]
    for asked in (None, both, turned, both[:1], both[1:]):
        outputs = asked and [library.module.InferRequestedOutput(name) for name in asked]
        names = asked or both
        for sent in (inputs, inputs[::-1]):
            result = await library.call("infer", "simple", sent, outputs=outputs)
            assert [output["name"] for output in library.response(result)["outputs"]] == names
            for name in names:
                assert (result.as_numpy(name) == expected[name]).all(), (names, name)
    short = library.input("INPUT1", two[:2])
    for wrong in (inputs[:1], [inputs[0], short], [*inputs, library.input("INPUT2", one)]):
        assert "INPUT" in await library.refused(400, "infer", "simple", wrong)


@common
async def every_datatype_comes_back_as_it_was_sent(library):
    for datatype in NUMPY_TYPES:
        for batch in batches(datatype):
            assert_same(await library.infer(f"identity-{datatype.lower()}", batch), batch)


@common
async def outputs_may_be_asked_for_by_name(library):
    outputs = [library.module.InferRequestedOutput("output")]
    for datatype in NUMPY_TYPES:
        [batch, *_] = batches(datatype)
        result = await library.infer(f"identity-{datatype.lower()}", batch, outputs=outputs)
        assert_same(result, batch)
        [output] = library.response(result)["outputs"]
        assert (output["name"], output["datatype"]) == ("output", datatype)


@common
async def more_rows_than_a_batch_holds_are_answered_in_order(library):
    rows = np.arange(1800, dtype=np.int32).reshape(600, 3)
    assert_same(await library.infer("identity-int32", rows), rows)


@common
async def tensors_of_megabytes_go_through(library):
    rows = np.arange(16 * 100_000, dtype=np.float32).reshape(16, 100_000)
    assert_same(await library.infer("identity-fp32", rows), rows)


@common
async def many_requests_at_once_get_their_own_answers(library):
    batches = [np.full((1 + index % 3, 4), index, dtype=np.int64) for index in range(64)]
    results = await library.infer_many("identity-int64", batches)
    for result, batch in zip(results, batches, strict=True):
        assert_same(result, batch)


@common
async def bodies_may_be_compressed(library):
    rows = np.zeros((8, 1024), dtype=np.float32)
    texts = np.array([TEXTS] * 50, dtype=np.object_)
    for compression in library.compressions:
        assert_same(await library.infer("identity-fp32", rows, **compression), rows)
        assert_same(await library.infer("identity-bytes", texts, **compression), texts)


@common
async def ids_come_back(library):
    for request_id in ("order-66", 'grüße "😀"', "x" * 200):
        result = await library.infer("ranker", features(1), request_id=request_id)
        assert library.response(result)["id"] == request_id
        result = await library.infer(
            "pipeline:digits", picture(7), name="REQUEST", request_id=request_id
        )
        assert library.response(result)["id"] == request_id


@common
async def parameters_are_taken(library):
    result = await library.infer(
        "ranker",
        features(3),
        priority=1,
        timeout=30_000_000,
        parameters={"of-my-own": "text", "count": 3, "flag": True},
    )
    assert result.as_numpy("output").shape == (3, 1)


@common
async def a_level_that_the_model_has_not_is_its_default_level(library):
    for model in ("ranker", "configured"):
        result = await library.infer(model, features(1), priority=9)
        assert result.as_numpy("output").shape == (1, 1)


@common
async def a_request_is_queued_no_longer_than_its_timeout(library):
    inputs = [library.input("input", features(1))]
    await library.refused((503, 504), "infer", "waits", inputs, timeout=1000)


@common
async def what_is_given_up_leaves_the_queue(library):
    before = lane("waits")
    async with library.under_way("waits", features(1)):
        await until("waits", queued_rows=1)
    await until("waits", queued_rows=0, fail=before["fail"] + 1, batches=before["batches"])


@common
async def a_full_queue_refuses_further_requests(library):
    inputs = [library.input("input", features(1))]
    before = lane("waits")
    async with library.under_way("waits", features(1)):
        await until("waits", queued_rows=1)
        # The first level would have room, and a batch of two: it is the default level that takes the last.
        for priority in (0, 2, 9):
            message = await library.refused(429, "infer", "waits", inputs, priority=priority)
            assert "level is full: 1 of 1 requests" in message, message
        assert lane("waits")["queued_rows"] == 1
    await until("waits", fail=before["fail"] + 4, batches=before["batches"])


@over_grpc
async def a_deadline_reaches_the_batcher(library):
    inputs = [library.input("input", features(1))]
    # Of the second the client knows nothing: the answer is the server's.
    for deadline in ({"client_timeout": 0.05}, {"headers": {"grpc-timeout": "50m"}}):
        before = lane("waits")
        message = await library.refused(504, "infer", "waits", inputs, **deadline)
        await until("waits", queued_rows=0, fail=before["fail"] + 1, batches=before["batches"])
    assert message.startswith("no answer within "), message


@common
async def the_ranker_gives_its_recorded_scores(library):
    for case in json.loads((MODELS / "ranker/golden.json").read_text())["cases"]:
        rows, scores = (
            np.array(tensor["data"], dtype=np.float32).reshape(tensor["shape"])
            for tensor in (case["inputs"][0], case["outputs"][0])
        )
        got = (await library.infer("ranker", rows)).as_numpy("output")
        assert got.shape == scores.shape and np.abs(got - scores).max() < 1e-4


# Pipelines.


@common
async def a_pipeline_is_a_model_of_bytes(library):
    for name in PIPELINES:
        assert await library.ready(name)
        document = await library.document("get_model_metadata", name)
        for tensors, tensor in (("inputs", "REQUEST"), ("outputs", "RESPONSE")):
            [tensors] = document[tensors]
            assert (tensors["name"], tensors["datatype"]) == (tensor, "BYTES"), document
            assert dims(tensors) == [1], document
        document = await library.document("get_model_config", name)
        document = document.get("config", document)
        assert int(document["max_batch_size"]) == 0, document
        [tensor] = document["input"]
        assert (tensor["name"], tensor["data_type"]) == ("REQUEST", "TYPE_STRING"), document
        assert [int(size) for size in tensor["dims"]] == [1], document
        [statistics] = (await library.document("get_inference_statistics", name))["model_stats"]
        assert statistics["name"] == name


@common
async def a_pipeline_answers(library):
    for digit in range(10):
        result = await library.infer("pipeline:digits", picture(digit), name="REQUEST")
        assert answer_of(result)["label"] == digit
    result = await library.infer("pipeline:ranker", ranking(), name="REQUEST")
    assert [item["id"] for item in answer_of(result)["items"]] == ["a"]


@common
async def what_a_pipeline_cannot_take_is_refused(library):
    def request(name, array):
        return [library.input(name, array)]

    garbage = np.array([b"\xff\x00 no picture"], dtype=np.object_)
    two = np.array([b"", b""], dtype=np.object_)
    number = np.array([1], dtype=np.int32)
    await library.refused((400, 415), "infer", "pipeline:digits", request("REQUEST", garbage))
    await library.refused(400, "infer", "pipeline:digits", request("REQUEST", two))
    await library.refused(400, "infer", "pipeline:digits", request("REQUEST", number))
    await library.refused(400, "infer", "pipeline:digits", request("input", picture(7)))
    await library.refused(400, "infer", "pipeline:digits", [])
    await library.refused(404, "infer", "pipeline:nothing", request("REQUEST", picture(7)))


# Refusals.


@common
async def a_model_that_is_not_granted_is_not_there(library):
    def request():
        return [library.input("input", np.zeros((1, 1, 28, 28), dtype=np.float32))]

    unknown = await library.refused(404, "infer", "nothing", request())
    hidden = await library.refused(404, "infer", "digits", request())
    assert "nothing" in unknown and unknown.replace("nothing", "digits") == hidden, (unknown, hidden)
    for name in ("nothing", "digits", "pipeline:"):
        assert not await library.ready(name)
        for method in ("get_model_metadata", "get_model_config", "get_inference_statistics"):
            await library.refused(404, method, name)


@common
async def inputs_that_do_not_fit_are_refused(library):
    def tensor(rows, name="input", numpy_type=np.float32):
        return library.input(name, np.zeros(rows, dtype=numpy_type))

    def texts(*row):
        return np.array([row], dtype=np.object_)

    def reshaped(array, shape):
        """Says another shape than its bytes have."""
        return library.input("input", array).set_shape(shape)

    cases = [
        ("inptu", "ranker", [tensor((1, 32), name="inptu")]),
        ("input", "ranker", []),
        ("input", "ranker", [tensor((1, 32)), tensor((1, 32))]),
        ("FP32", "ranker", [tensor((1, 32), numpy_type=np.float64)]),
        ("32", "ranker", [tensor((1, 31))]),
        ("32", "ranker", [tensor((32,))]),
        ("32", "ranker", [tensor((1, 1, 32))]),
        ("input", "ranker", [tensor((0, 32))]),
        ("input", "ranker", [reshaped(np.zeros((1, 32), dtype=np.float32), [2, 32])]),
        ("input", "ranker", [reshaped(np.zeros((2, 32), dtype=np.float32), [1, 32])]),
        ("input", "ranker", [reshaped(np.zeros((1, 32), dtype=np.float32), [-1, 32])]),
        ("input", "identity-bytes", [reshaped(texts("a"), [1, 2])]),
        ("input", "identity-bytes", [reshaped(texts("a", "b"), [1, 1])]),
        ("input", "identity-bytes", [library.input("input", texts(b"\xff"))]),
        ("element 1 holds a NUL", "identity-bytes", [library.input("input", texts("a", "b\0c"))]),
    ]
    for named, model, inputs in cases:
        message = await library.refused(400, "infer", model, inputs)
        assert named in message, f"{named!r} is missing from: {message}"
    outputs = [library.module.InferRequestedOutput("outptu")]
    message = await library.refused(400, "infer", "ranker", [tensor((1, 32))], outputs=outputs)
    assert "outptu" in message, message
    # Nothing of it harms the next one.
    assert (await library.infer("ranker", features(2))).as_numpy("output").shape == (2, 1)


@common
async def a_refused_request_harms_no_later_one(library):
    for elements in (1, 7_000, 15_000, 100_000):
        for _ in range(5):
            inputs = [library.input("input", np.zeros((1, elements), dtype=np.float32))]
            await library.refused(404, "infer", "nothing", inputs)
            assert_same(await library.infer("identity-fp32", features(1)), features(1))


@common
async def tensors_may_have_no_elements(library):
    empty = np.zeros((1, 0), dtype=np.float32)
    assert_same(await library.infer("identity-fp32", empty), empty)


@common
async def what_a_model_fails_at_fails_alone(library):
    _, before, *_ = await statistics_of(library, "look-up")
    outside = [library.input("input", np.array([[1], [4]]))]
    assert "out of data bounds" in await library.refused(500, "infer", "look-up", outside)
    result = await library.infer("look-up", np.array([[3], [0]]))
    assert (result.as_numpy("output") == [[30], [0]]).all()
    statistics, after, *_ = await statistics_of(library, "look-up")
    for name in ("success", "fail"):
        assert after[name] - before[name] == 1, (name, statistics)
    assert int(statistics["inference_stats"]["fail"]["ns"]) > 0, statistics


@common
async def what_is_over_the_limit_of_a_message_is_refused(library):
    inputs = [library.input("input", np.zeros((9, 1 << 18), dtype=np.float32))]
    assert str(8 << 20) in await library.refused(413, "infer", "identity-fp32", inputs)
    assert_same(await library.infer("identity-fp32", features(1)), features(1))


@common
async def classification_is_refused(library):
    outputs = [library.module.InferRequestedOutput("output", class_count=3)]
    inputs = [library.input("input", features(1))]
    message = await library.refused(501, "infer", "ranker", inputs, outputs=outputs)
    assert "classification" in message, message
    # None asked for, in so many words.
    output = library.module.InferRequestedOutput("output")
    if hasattr(output, "_output"):
        output._output.parameters["classification"].int64_param = 0
    else:
        output._parameters["classification"] = 0
    result = await library.infer("ranker", features(1), outputs=[output])
    assert result.as_numpy("output").shape == (1, 1)


@common
async def shared_memory_is_refused(library):
    handle = base64.b64encode(bytes(64)).decode()
    calls = [
        ("get_system_shared_memory_status",),
        ("register_system_shared_memory", "region", "/key", 128),
        ("unregister_system_shared_memory", "region"),
        ("unregister_system_shared_memory",),
        ("get_cuda_shared_memory_status",),
        ("register_cuda_shared_memory", "region", handle, 0, 128),
        ("unregister_cuda_shared_memory", "region"),
        ("unregister_cuda_shared_memory",),
    ]
    for call in calls:
        message = await library.refused(501, *call)
        assert "tenant" in message, message
    there = library.module.InferInput("input", [1, 32], "FP32")
    there.set_shared_memory("region", 128)
    message = await library.refused(501, "infer", "ranker", [there])
    assert "tenant" in message, message
    output = library.module.InferRequestedOutput("output")
    output.set_shared_memory("region", 4)
    inputs = [library.input("input", features(1))]
    message = await library.refused(501, "infer", "ranker", inputs, outputs=[output])
    assert "tenant" in message, message


@common
async def a_key_is_needed(library):
    for status, key in ((401, None), (403, NOBODYS)):
        inputs = [library.input("input", features(1))]
        await library.refused(status, "infer", "ranker", inputs, key=key)
        await library.refused(status, "get_model_metadata", "ranker", key=key)
        await library.refused(status, "get_model_config", "ranker", key=key)
        await library.refused(status, "get_inference_statistics", "ranker", key=key)
        await library.refused(status, "get_inference_statistics", key=key)
        await library.refused(status, "get_model_repository_index", key=key)


# Statistics.


async def statistics_of(library, model, key=KEY):
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


@common
async def statistics_count_every_request_and_row(library):
    await library.infer("ranker", features(1))
    before, counts, rows, runs = await statistics_of(library, "ranker")
    for size in (1, 5, 1, 5, 1):
        await library.infer("ranker", features(size))
    statistics, after, rows_after, runs_after = await statistics_of(library, "ranker")
    assert rows_after - rows == 13 and runs_after - runs == 5, statistics
    for name in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
        assert after[name] - counts[name] == 5, (name, statistics)

    def grown(name):
        return int(statistics["inference_stats"][name]["ns"]) - int(before["inference_stats"][name]["ns"])

    # Each request ran in one batch, so that its parts fit in all of its time.
    parts = [grown(name) for name in ("queue", "compute_input", "compute_infer", "compute_output")]
    assert all(part >= 0 for part in parts) and grown("compute_infer") > 0, (before, statistics)
    assert sum(parts) <= grown("success"), (before, statistics)
    assert int(statistics["last_inference"]) > 1_600_000_000_000, statistics
    for name in ("cache_hit", "cache_miss"):
        assert after[name] == 0, statistics


@common
async def statistics_name_what_the_tenant_may_use(library):
    every = (await library.document("get_inference_statistics"))["model_stats"]
    assert {statistics["name"] for statistics in every} == GRANTED | PIPELINES, every


@common
async def statistics_are_the_tenants_own(library):
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


# JSON tensors, and paths.


@over_http
async def json_and_binary_tensors_mix(library):
    for datatype in NUMPY_TYPES.keys() - BINARY_ONLY:
        for batch in batches(datatype, finite=True):
            for binary_in, binary_out in ((False, False), (False, True), (True, False)):
                inputs = [library.input("input", batch, binary_data=binary_in)]
                outputs = [library.module.InferRequestedOutput("output", binary_data=binary_out)]
                model = f"identity-{datatype.lower()}"
                result = await library.call("infer", model, inputs, outputs=outputs)
                assert_same(result, batch)
                [output] = library.response(result)["outputs"]
                assert ("data" in output) != binary_out, output


@over_http
async def several_json_and_binary_tensors_mix(library):
    one, two = (np.arange(32, dtype=np.int32).reshape(2, 16) * factor for factor in (1, -7))
    for kinds in product((False, True), repeat=4):
        inputs = [
            library.input(name, array, binary_data=binary)
            for name, array, binary in zip(("INPUT0", "INPUT1"), (one, two), kinds[:2], strict=True)
        ]
        outputs = [
            library.module.InferRequestedOutput(name, binary_data=binary)
            for name, binary in zip(("OUTPUT1", "OUTPUT0"), kinds[2:], strict=True)
        ]
        result = await library.call("infer", "simple", inputs, outputs=outputs)
        assert (result.as_numpy("OUTPUT0") == one + two).all(), kinds
        assert (result.as_numpy("OUTPUT1") == one - two).all(), kinds
        told = library.response(result)["outputs"]
        assert tuple("data" not in output for output in told) == kinds[2:], (kinds, told)


@over_http
async def json_tensors_may_be_compressed(library):
    texts = np.array([TEXTS] * 50, dtype=np.object_)
    for compression in library.compressions:
        inputs = [library.input("input", texts, binary_data=False)]
        outputs = [library.module.InferRequestedOutput("output", binary_data=False)]
        result = await library.call(
            "infer", "identity-bytes", inputs, outputs=outputs, **compression
        )
        assert_same(result, texts)


@over_http
async def what_json_cannot_hold_is_refused(library):
    half = library.input("input", np.ones((1, 2), dtype=np.float16), binary_data=False)
    await library.refused(400, "infer", "identity-fp16", [half])
    not_a_number = np.full((1, 2), np.nan, dtype=np.float32)
    as_json = [library.module.InferRequestedOutput("output", binary_data=False)]
    sent = library.input("input", not_a_number, binary_data=False)
    await library.refused(400, "infer", "identity-fp32", [sent])
    sent = library.input("input", not_a_number)
    await library.refused(400, "infer", "identity-fp32", [sent], outputs=as_json)
    sent = library.input("input", np.ones((1, 2), dtype=np.float16))
    await library.refused(400, "infer", "identity-fp16", [sent], outputs=as_json)


@over_http
async def a_pipeline_speaks_json_too(library):
    outputs = [library.module.InferRequestedOutput("RESPONSE", binary_data=False)]
    inputs = [library.input("REQUEST", ranking(), binary_data=False)]
    result = await library.call("infer", "pipeline:ranker", inputs, outputs=outputs)
    assert [item["id"] for item in answer_of(result)["items"]] == ["a"]


@over_http
async def a_tenant_may_stand_in_the_path(library):
    below = library.at("/v1/acme")
    try:
        assert await below.call("is_server_live") and await below.call("is_server_ready")
        assert (await below.document("get_server_metadata"))["name"]
        assert await below.ready("ranker")
        assert set(await index_of(below)) == GRANTED | PIPELINES
        assert_same(await below.infer("identity-fp32", features(5)), features(5))
        result = await below.infer("pipeline:digits", picture(7), name="REQUEST")
        assert answer_of(result)["label"] == 7
        inputs = [below.input("input", features(1))]
        await below.refused(401, "infer", "ranker", inputs, key=None)
    finally:
        await below.close()
    other = library.at("/v1/other")
    try:
        inputs = [other.input("input", features(1))]
        await other.refused(401, "infer", "ranker", inputs)
        await other.refused(401, "get_model_repository_index")
    finally:
        await other.close()


# Last, as they change the server.


@common
async def an_earlier_version_is_no_longer_loaded(library):
    model = "identity-uint8"
    [earlier] = (await library.document("get_model_metadata", model))["versions"]
    content = (FIXTURES / "identity-fp32.onnx").read_bytes()
    administer("PUT", f"models/{model}?force=true", content)
    [version] = (await library.document("get_model_metadata", model))["versions"]
    assert int(version) > int(earlier)
    entries = [entry for entry in await entries_of(library) if entry["name"] == model]
    told = [(entry["version"], entry["state"], entry["reason"]) for entry in entries]
    assert told == [(version, "READY", ""), (earlier, "UNAVAILABLE", "superseded")], entries
    inputs = [library.input("input", features(1))]
    calls = [("infer", model, inputs, earlier), ("get_model_metadata", model, earlier)]
    for call in calls:
        message = await library.refused(404, *call)
        assert f"version {earlier} of" in message and "no longer loaded" in message, message
        assert f"version {version} serves" in message, message
    assert not await library.ready(model, earlier)
    assert_same(await library.infer(model, features(1), model_version=version), features(1))


@common
async def only_an_administrator_loads_and_unloads(library):
    # Of those that no pipeline needs.
    model = "identity-fp32"

    def request():
        return [library.input("input", features(1))]

    [version] = (await library.document("get_model_metadata", model))["versions"]
    for method in ("load_model", "unload_model"):
        await library.refused(401, method, model, key=None)
        await library.refused(403, method, model)
        await library.refused(403, method, model, key=NOBODYS)
        await library.refused(404, method, "nothing", key=ADMIN_TOKEN)
    files = {"file:1/model.onnx": (FIXTURES / "identity-fp64.onnx").read_bytes()}
    for named, brought in (("config", {"config": "{}"}), ("file:1/model.onnx", {"files": files})):
        message = await library.refused(501, "load_model", model, key=ADMIN_TOKEN, **brought)
        assert f'"{named}"' in message, message
    assert await library.ready(model)

    await library.call("unload_model", model, key=ADMIN_TOKEN)
    assert not await library.ready(model)
    await library.refused(503, "infer", model, request())
    assert (await index_of(library))[model]["state"] == "UNAVAILABLE"
    assert await library.call("is_server_live") is True
    assert (await library.infer("ranker", features(1))).as_numpy("output").shape == (1, 1)

    await library.call("load_model", model, key=ADMIN_TOKEN)
    assert await library.ready(model)
    assert (await index_of(library))[model]["state"] == "READY"
    assert (await library.document("get_model_metadata", model))["versions"] == [version]
    assert_same(await library.infer(model, features(1)), features(1))
    # A pipeline needs this one.
    await library.refused(400, "unload_model", "ranker", key=ADMIN_TOKEN)
    assert await library.ready("ranker")


@asynccontextmanager
async def in_a_task(library, model, array):
    """A request under way, of an asynchronous library, given up in the end."""
    task = asyncio.create_task(library.infer(model, array))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def gathered(library, model, batches):
    """Many requests at once, of an asynchronous library."""
    return await asyncio.gather(*(library.infer(model, batch) for batch in batches))
