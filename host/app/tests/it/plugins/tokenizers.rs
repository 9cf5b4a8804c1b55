//! Tokenizers among the assets of a pipeline: what plugins get, what they are told about broken and
//! costly files, and what a tenant beside notices of it.

use std::fs;

use serde_json::{Value, json};

use crate::support::deploy::processor;
use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;

fn fixture(name: &str) -> Vec<u8> {
    fs::read(files::root().join("host/text/tests/fixtures").join(name)).unwrap()
}

/// A fixture with one of its parts replaced.
fn changed(name: &str, part: &str, value: Value) -> Vec<u8> {
    let mut file: Value = serde_json::from_slice(&fixture(name)).unwrap();
    file[part] = value;
    file.to_string().into_bytes()
}

/// An open tenant whose pipeline `hostile` has this file as `tokenizer.json`.
#[track_caller]
fn with_tokenizer(server: &Server, tenant: &str, file: &[u8]) {
    server.hostile(tenant);
    server.put(&format!("tenants/{tenant}/assets/words"), file);
    let mut pipeline = processor("hostile", json!({ "cpu_ms": 20_000, "timeout_ms": 60_000 }));
    pipeline["assets"] = json!({ "tokenizer.json": "words" });
    server.pipeline(tenant, "hostile", &pipeline);
}

/// What the plugin got, as it tells it.
#[track_caller]
fn asked(server: &Server, tenant: &str, body: &Value) -> Value {
    let path = format!("/v1/{tenant}/infer/hostile?do=tokens");
    let answer = server.data.post(&path, body.to_string().as_bytes());
    assert_eq!(answer.status, 200, "{body}: {}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

#[track_caller]
fn refused(server: &Server, tenant: &str, body: &Value) -> String {
    let answer = asked(server, tenant, body);
    answer["error"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn texts_become_ids_of_one_length() {
    let server = Server::start();
    with_tokenizer(&server, "acme", &fixture("word_piece.json"));
    let expected: Value = serde_json::from_slice(&fixture("word_piece.expected.json")).unwrap();
    let ids_of_python =
        |at: usize| expected["texts"][at]["with"]["ids"].as_array().unwrap().clone();
    let text = |at: usize| expected["texts"][at]["text"].clone();
    let (short, long) = (ids_of_python(2), ids_of_python(4));
    let padded = |ids: &[Value], length: usize| {
        let padding = vec![json!(0); length - ids.len()];
        [ids, &padding].concat()
    };
    let texts = json!([text(2), text(4)]);
    for pass in [true, false] {
        let body = json!({ "texts": texts, "pass": pass });
        let answer = asked(&server, "acme", &body);
        let length = long.len();
        assert_eq!(answer["shape"], json!([2, length]));
        assert_eq!(answer["lengths"], json!([short.len(), length]));
        assert_eq!(answer["ids"], json!([padded(&short, length), long.clone()].concat()));
        let ones = |count: usize| vec![json!(1); count];
        let mask = [padded(&ones(short.len()), length), ones(length)].concat();
        assert_eq!(answer["mask"], json!(mask));
        assert_eq!(answer["offsets"], Value::Null);
    }
    let one =
        |options: Value| asked(&server, "acme", &json!({ "texts": [text(2)], "options": options }));
    assert_eq!(one(json!({ "fixed": 9 }))["ids"], json!(padded(&short, 9)));
    assert_eq!(one(json!({ "buckets": [64, 16, 4] }))["shape"], json!([1, 16]));
    assert_eq!(one(json!({ "int32": true }))["ids"], json!(short));
    let left = one(json!({ "fixed": 9, "pad": "left", "pad_id": 4 }));
    assert_eq!(left["ids"].as_array().unwrap()[..3], vec![json!(4); 3][..]);
    let cut = one(json!({ "max_length": 4 }));
    assert_eq!(cut["ids"], json!([&short[..3], &short[short.len() - 1..]].concat()));
    let offsets = one(json!({ "offsets": "characters" }));
    assert_eq!(offsets["offsets"], expected["texts"][2]["with"]["offsets"]);
    let pair = &expected["pairs"][0];
    let body = json!({ "texts": [pair["text"]], "pairs": [pair["pair"]] });
    let answer = asked(&server, "acme", &body);
    assert_eq!(answer["ids"], pair["with"]["ids"]);
    assert_eq!(answer["types"], pair["with"]["type_ids"]);
    assert_eq!(asked(&server, "acme", &json!({ "texts": [] }))["shape"], json!([0, 0]));
}

#[test]
fn ids_become_texts() {
    let server = Server::start();
    with_tokenizer(&server, "acme", &fixture("patterns.json"));
    let expected: Value = serde_json::from_slice(&fixture("patterns.expected.json")).unwrap();
    for row in expected["decoded"].as_array().unwrap().iter().take(8) {
        let body = json!({ "decode": [row["ids"]], "skip": true });
        assert_eq!(asked(&server, "acme", &body), json!([row["without_special"]]), "{row}");
    }
    assert_eq!(asked(&server, "acme", &json!({ "decode": [[4_000_000_000_u32]] })), json!([""]));
    let refused = refused(&server, "acme", &json!({ "decode": [[-1]] }));
    assert_eq!(refused, "invalid-argument: the id -1 must be 0 to 4294967295");
    let id = asked(&server, "acme", &json!({ "token": "<|user|>" }));
    assert!(id.as_u64().is_some(), "{id}");
    assert_eq!(asked(&server, "acme", &json!({ "token": "nowhere" })), Value::Null);
}

#[test]
fn wrong_arguments_and_files_are_named() {
    let server = Server::start();
    with_tokenizer(&server, "acme", &fixture("word_piece.json"));
    let missing = refused(&server, "acme", &json!({ "asset": "other.json", "texts": ["a"] }));
    assert!(missing.starts_with("no-asset: there is no asset \"other.json\""), "{missing}");
    let wrong = |options: Value| {
        refused(&server, "acme", &json!({ "texts": ["a b c"], "options": options }))
    };
    assert!(
        wrong(json!({ "fixed": 2 })).contains("a text has 5 tokens, but padding makes rows of")
    );
    assert!(wrong(json!({ "buckets": [] })).contains("0 buckets are given"));
    assert!(wrong(json!({ "max_length": 1 })).contains("adds 2 special tokens"));
    let odd = refused(&server, "acme", &json!({ "texts": ["a", "b"], "pairs": ["c"] }));
    assert_eq!(odd, "invalid-argument: there are 2 texts, but 1 pairs");

    let broken = json!({ "type": "Split" });
    with_tokenizer(&server, "beta", &changed("word_piece.json", "pre_tokenizer", broken));
    for _ in 0..2 {
        let why = refused(&server, "beta", &json!({ "texts": ["a"] }));
        let text =
            "malformed: asset \"tokenizer.json\": pre_tokenizer (Split): missing field `pattern`";
        assert!(why.starts_with(text), "{why}");
    }
    with_tokenizer(&server, "gamma", b"not JSON");
    let why = refused(&server, "gamma", &json!({ "texts": ["a"] }));
    assert!(why.contains("it is not a tokenizer.json: "), "{why}");
}

#[test]
fn many_tiny_texts_are_encoded_beside_others() {
    let server = Server::start();
    server.digits("beside");
    with_tokenizer(&server, "acme", &fixture("word_piece.json"));
    let one = asked(&server, "acme", &json!({ "texts": ["the"] }))["ids"].clone();
    let one = one.as_array().unwrap();
    // They have few bytes, so they begin on a serving thread.
    let texts = vec!["the"; 600];
    let many = asked(&server, "acme", &json!({ "texts": texts }));
    assert_eq!(many["shape"], json!([600, one.len()]));
    assert_eq!(many["ids"], json!(vec![one.as_slice(); 600].concat()));
    let ids = vec![one; 100];
    let texts = asked(&server, "acme", &json!({ "decode": ids, "skip": true }));
    assert_eq!(texts, json!(vec!["the"; 100]));
    server.assert_reads("beside", 7);
}

#[test]
fn tenants_with_the_same_file_read_and_pay_for_themselves() {
    let server = Server::start();
    let file = fixture("unigram.json");
    let held = |tenant: &str| {
        server.status()["tenants"][tenant]["bytes_under_way"].as_u64().unwrap_or_default()
    };
    for tenant in ["one", "other"] {
        with_tokenizer(&server, tenant, &file);
    }
    let body = json!({ "texts": ["the server answers"] });
    let answer = asked(&server, "one", &body);
    eventually("the first tenant pays", || held("one") > 100_000);
    assert!(held("other") < 100_000, "{}", held("other"));
    assert_eq!(asked(&server, "other", &body), answer);
    eventually("the other tenant pays, too", || held("other") > 100_000);
    // A tenant that has the file no longer pays no longer, though others have it.
    server.put("tenants/one/assets/words", b"not JSON");
    eventually("the first tenant has let go of it", || held("one") < 100_000);
    assert_eq!(asked(&server, "other", &body), answer);
    assert!(held("other") > 100_000, "{}", held("other"));
}

#[test]
fn costly_files_and_texts_end_and_hold_up_nobody_else() {
    let server = Setup::new().start();
    server.digits("beside");
    // A search with it would not end before the sun does.
    let pattern = json!({
        "type": "Split", "pattern": { "Regex": "(?:(?:(?=a)(?=a)){99999999999}){99999999999}" },
        "behavior": "Isolated", "invert": false,
    });
    with_tokenizer(&server, "acme", &changed("patterns.json", "pre_tokenizer", pattern));
    let why = refused(&server, "acme", &json!({ "texts": ["a"] }));
    let text = "malformed: asset \"tokenizer.json\": pre_tokenizer.pattern ";
    assert!(why.starts_with(text) && why.contains("look-around"), "{why}");
    // Every search reads the text to its end.
    let pattern = json!({
        "type": "Split", "pattern": { "Regex": "[a]*b|a" }, "behavior": "Isolated", "invert": false,
    });
    with_tokenizer(&server, "slow", &changed("patterns.json", "pre_tokenizer", pattern));
    let mut hurried = processor("hostile", json!({ "cpu_ms": 200 }));
    hurried["assets"] = json!({ "tokenizer.json": "words" });
    server.pipeline("slow", "hostile", &hurried);
    let body = json!({ "texts": ["a".repeat(100_000)] }).to_string();
    let answer = server.data.post("/v1/slow/infer/hostile?do=tokens", body.as_bytes());
    // The first call reads the file, for which it may take longer.
    answer.refused(504, "plugin_timeout", &[]);
    let answer = server.data.post("/v1/slow/infer/hostile?do=tokens-for-ever", b"ab ab ab");
    answer.refused(504, "plugin_timeout", &["200 ms"]);

    with_tokenizer(&server, "long", &fixture("unigram.json"));
    let body = json!({ "texts": ["a".repeat(128 << 10)], "options": { "max_length": 16 } });
    assert_eq!(asked(&server, "long", &body)["shape"], json!([1, 16]));
    let answer = server.data.post("/v1/long/infer/hostile?do=tokens-many", b"a b c");
    assert_eq!(answer.text(), "harmless");
    server.assert_reads("beside", 7);
}
