//! What the host does for plugins in JavaScript: stores, tokenizers, tables, and kept things.

use std::fs;

use serde_json::{Value, json};

use super::{archive, put, sends, serve, server, twice};
use crate::support::deploy::processor;
use crate::support::files;
use crate::support::stores::configured;

#[test]
fn a_store_is_read_and_changed() {
    let table = "[stores.s]\nembedded = true\ntimeout_ms = 20000\n";
    let server = configured(table).with_runtimes().start();
    server.put_json("tenants/acme", &json!({ "open": true, "stores": { "s": "write" } }));
    server.model("digits");
    put(
        &server,
        &twice(
            "\
const { store } = require('gristmill-plugin');
function call(body) {
  const n = store.increment('s', 'n');
  store.set('s', body, new Uint8Array(new Float32Array([n, 2.5]).buffer), { ttlMs: 1e6 });
  const rows = Array.from(store.gather('s', [body, 'none'], 2, -1).data());
  const texts = store.getMany('s', ['n', 'none']).map((value) => value?.text() ?? null);
  let kind;
  try {
    store.get('other', 'k');
  } catch (error) {
    kind = error.kind;
  }
  return [rows, texts, store.get('s', body).length, kind];
}",
        ),
    );
    serve(&server, "none");
    let expected = |n: f32| json!([[n, 2.5, -1.0, -1.0], [n.to_string(), null], 8, "not-granted"]);
    let found = sends(&server, "row");
    // A whole number in JSON may have no fraction.
    let as_text = |value: &Value| value.to_string().replace(".0", "");
    assert_eq!(as_text(&found), as_text(&json!([expected(1.0), expected(2.0)])));
}

/// A plugin that answers what `make` of its first call gives.
fn first(make: &str) -> Vec<u8> {
    archive(&format!(
        "\
const {{ PluginResponse, tables, Tensor, Tokenizer }} = require('gristmill-plugin');
{make}
exports.preprocess = (context, request) => {{
  const state = make(request);
  return {{ inputs: {{ input: Tensor.from(new Float32Array(784), [1, 1, 28, 28]) }}, state }};
}};
exports.postprocess = (context, outputs, state) => PluginResponse.json(state.json());
"
    ))
}

/// The numbers are those of the Python package `tokenizers`.
#[test]
fn a_tokenizer_makes_ids_of_texts_and_texts_of_ids() {
    let fixture =
        |name: &str| fs::read(files::root().join("host/text/tests/fixtures").join(name)).unwrap();
    let expected: Value = serde_json::from_slice(&fixture("word_piece.expected.json")).unwrap();
    let server = server();
    put(
        &server,
        &first(
            "\
const tokenizer = new Tokenizer();
const numbers = (tensor) => Array.from(tensor.data(), Number);
function make(request) {
  const one = tokenizer.encode(request.json('/text'), { offsets: 'characters' });
  const pair = tokenizer.encode(request.json('/text'), { pairs: [request.json('/pair')], dtype: 'int32' });
  const both = tokenizer.encode(request.jsonTensor('/texts', 'string'), { padding: [64, 128], padId: 4 });
  const kinds = [() => tokenizer.encode('a b', { padding: 1 }), () => new Tokenizer('x').tokenToId('a')];
  return {
    ids: numbers(one.ids), mask: numbers(one.attentionMask), offsets: numbers(one.offsets),
    pair: [pair.ids.dtype, numbers(pair.ids), numbers(pair.typeIds), pair.offsets ?? null],
    both: [both.ids.shape, both.lengths, numbers(both.ids).slice(-1)],
    texts: [tokenizer.decode(one.ids, { skipSpecialTokens: false }), tokenizer.decode([2, 3])],
    tokens: [tokenizer.tokenToId('[CLS]'), tokenizer.tokenToId('nowhere') ?? null],
    kinds: kinds.map((ask) => { try { ask(); } catch (error) { return error.kind; } }),
  };
}",
        ),
    );
    server.put("tenants/acme/assets/words", &fixture("word_piece.json"));
    let mut pipeline = processor("it", json!({ "cpu_ms": 20_000, "timeout_ms": 60_000 }));
    pipeline["assets"] = json!({ "tokenizer.json": "words" });
    server.pipeline("acme", "it", &pipeline);
    let (one, pair) = (&expected["texts"][2], &expected["pairs"][0]);
    let lengths = [2, 4].map(|at| expected["texts"][at]["with"]["ids"].as_array().unwrap().len());
    let body = json!({
        "text": one["text"], "pair": pair["pair"],
        "texts": [one["text"], expected["texts"][4]["text"]],
    });
    assert_eq!(pair["text"], one["text"]);
    let answer = sends(&server, &body.to_string());
    assert_eq!(answer["ids"], one["with"]["ids"]);
    assert_eq!(answer["mask"], json!(vec![1; lengths[0]]));
    assert_eq!(answer["offsets"], one["with"]["offsets"]);
    let pair = json!(["int32", pair["with"]["ids"], pair["with"]["type_ids"], null]);
    assert_eq!(answer["pair"], pair);
    assert_eq!(answer["both"], json!([[2, 64], lengths, [4]]));
    let texts = json!([["[CLS] the server answers. [SEP]"], [""]]);
    assert_eq!(answer["texts"], texts);
    assert_eq!(answer["tokens"], json!([2, null]));
    assert_eq!(answer["kinds"], json!(["invalid-argument", "no-asset"]));
}

#[test]
fn rows_of_a_table_are_gathered() {
    let server = server();
    put(
        &server,
        &first(
            "\
const gather = (...args) => tables.gather('products.csv', ...args);
function make(request) {
  const rows = gather(['b', 7, 'none'], 2, -1);
  const ids = request.jsonTensor('/ids', 'int64');
  const kinds = [() => gather(['b'], 3), () => tables.gather('x', ['b'], 2)];
  return {
    rows: [rows.shape, Array.from(rows.data())],
    ids: Array.from(gather(ids, ['rating']).data()),
    kinds: kinds.map((ask) => { try { ask(); } catch (error) { return error.kind; } }),
  };
}",
        ),
    );
    server.put("tenants/acme/assets/products", b"id,price,rating\n7,9.5,4\nb,2.5,3\n");
    let mut pipeline = processor("it", json!({ "cpu_ms": 20_000, "timeout_ms": 60_000 }));
    pipeline["assets"] = json!({ "products.csv": "products" });
    server.pipeline("acme", "it", &pipeline);
    let answer = sends(&server, "{\"ids\": [7, 8]}");
    // A whole number in JSON may have no fraction.
    let as_text = |value: &Value| value.to_string().replace(".0", "");
    assert_eq!(as_text(&answer["rows"]), "[[3,2],[2.5,3,9.5,4,-1,-1]]");
    assert_eq!(as_text(&answer["ids"]), "[4,0]");
    assert_eq!(answer["kinds"], json!(["invalid-argument", "no-asset"]));
}

#[test]
fn what_preprocess_keeps_reaches_postprocess_in_every_mode_of_reuse() {
    let server = server();
    let script = "\
const { kept, np, Pixels, PluginResponse, Tensor } = require('gristmill-plugin');
module.exports = {
  preprocess(context, request) {
    const input = Tensor.from(new Float32Array(784), [1, 1, 28, 28]);
    const photo = Pixels.fromBytes(2, 1, Uint8Array.of(7, 8), 'gray');
    const row = np.array([1.5, 2.5], 'float32');
    return { inputs: { input }, keep: { photo, row, sum: row.add(1), body: request.body } };
  },
  postprocess() {
    const [photo, row, sum, body] = ['photo', 'row', 'sum', 'body'].map((name) => kept(name));
    let again;
    try { kept('photo'); } catch (error) { again = error.message; }
    return PluginResponse.json([photo.color, [...photo.data()], row, sum, body.text(), again]);
  },
};
";
    put(&server, &archive(script));
    for reuse in ["none", "request", "tenant"] {
        serve(&server, reuse);
        for body in ["one", "two", "three"] {
            let answer = sends(&server, body);
            let things = json!(["gray", [7, 8], [1.5, 2.5], [2.5, 3.5], body]);
            assert_eq!(answer.as_array().unwrap()[..5], things.as_array().unwrap()[..], "{reuse}");
            assert!(answer[5].as_str().unwrap().starts_with("nothing is kept as"), "{answer}");
        }
    }
    // What the model takes cannot be kept as well.
    let twice = script.replace("body: request.body", "input");
    put(&server, &archive(&twice));
    server.data.post("/v1/acme/infer/it", b"").refused(500, "plugin_failed", &[]);
    server.logs("is an input, is kept twice or is of another call");
}
