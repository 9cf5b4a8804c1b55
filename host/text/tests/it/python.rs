//! The ids, offsets and texts that `tests/make.py` got from the Python package.

use gristmill_text::{EncodeOptions, Encoded, OffsetUnit, Side, Tokenizer};
use serde_json::{Value, json};

use crate::support::{fixture, freely, read};

const NAMES: [&str; 5] = ["word_piece", "byte_level", "patterns", "byte_fallback", "unigram"];

/// With special tokens, and without the file's truncation.
const WHOLE: EncodeOptions = EncodeOptions {
    add_special_tokens: true,
    max_length: Some(1 << 30),
    truncate: None,
    offsets: Some(OffsetUnit::Characters),
};

struct Fixture {
    name: &'static str,
    tokenizer: Tokenizer,
    expected: Value,
}

fn fixtures() -> impl Iterator<Item = Fixture> {
    NAMES.into_iter().map(|name| Fixture {
        name,
        tokenizer: read(&fixture(&format!("{name}.json"))).unwrap(),
        expected: fixture(&format!("{name}.expected.json")),
    })
}

fn text_of(entry: &Value) -> String {
    match entry.as_str() {
        Some(text) => text.to_owned(),
        None => entry[0].as_str().unwrap().repeat(entry[1].as_u64().unwrap().try_into().unwrap()),
    }
}

fn hashed(numbers: impl Iterator<Item = u32>) -> String {
    let bytes = numbers.flat_map(u32::to_le_bytes);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The tokens as the script writes them.
fn told(encoded: &Encoded) -> Value {
    let offsets = encoded.offsets.iter().flat_map(|(begin, end)| [*begin, *end]);
    if encoded.ids.len() > 300 {
        return json!({
            "count": encoded.ids.len(),
            "ids_hash": hashed(encoded.ids.iter().copied()),
            "offsets_hash": hashed(offsets),
        });
    }
    let offsets: Vec<_> = offsets.collect();
    json!({ "ids": encoded.ids, "type_ids": encoded.type_ids, "offsets": offsets })
}

#[test]
fn ids_and_offsets_are_those_of_python() {
    for Fixture { name, tokenizer, expected } in fixtures() {
        let rows = expected["texts"].as_array().unwrap();
        assert!(rows.len() >= 20);
        for row in rows {
            let text = text_of(&row["text"]);
            let encode =
                |options| freely(|work| tokenizer.encode(&text, None, &options, work)).unwrap();
            let entry = &row["text"];
            let whole = encode(WHOLE);
            assert_eq!(told(&whole), row["with"], "{name}: {entry}");
            let plain = encode(EncodeOptions { add_special_tokens: false, ..WHOLE });
            assert_eq!(told(&plain), row["plain"], "{name}: {entry}");
            // Without offsets the library takes another way.
            let without = encode(EncodeOptions { offsets: None, ..WHOLE });
            assert_eq!(without.ids, whole.ids, "{name}: {entry}");
            assert_eq!(without.type_ids, whole.type_ids, "{name}: {entry}");
            assert!(without.offsets.is_empty());
        }
    }
}

#[test]
fn early_files_do_not_name_the_type_of_their_model() {
    for Fixture { name, expected, .. } in fixtures() {
        let mut file = fixture(&format!("{name}.json"));
        file["model"].as_object_mut().unwrap().remove("type").unwrap();
        let tokenizer = read(&file).unwrap();
        for row in expected["texts"].as_array().unwrap() {
            let text = text_of(&row["text"]);
            let encoded = freely(|work| tokenizer.encode(&text, None, &WHOLE, work)).unwrap();
            assert_eq!(told(&encoded), row["with"], "{name}: {}", row["text"]);
        }
    }
}

#[test]
fn pairs_are_those_of_python() {
    for Fixture { name, tokenizer, expected } in fixtures() {
        for row in expected["pairs"].as_array().unwrap() {
            let (text, pair) = (row["text"].as_str().unwrap(), row["pair"].as_str().unwrap());
            for options in [WHOLE, EncodeOptions { offsets: None, ..WHOLE }] {
                let encoded =
                    freely(|work| tokenizer.encode(text, Some(pair), &options, work)).unwrap();
                let mut tokens = told(&encoded);
                if options.offsets.is_none() {
                    tokens["offsets"] = row["with"]["offsets"].clone();
                }
                assert_eq!(tokens, row["with"], "{name}: {row}");
            }
        }
    }
}

#[test]
fn truncated_texts_are_those_of_python() {
    for Fixture { name, tokenizer, expected } in fixtures() {
        for row in expected["truncated"].as_array().unwrap() {
            let side = if row["side"] == "left" { Side::Left } else { Side::Right };
            let options = EncodeOptions {
                max_length: Some(row["max_length"].as_u64().unwrap() as usize),
                truncate: Some(side),
                ..WHOLE
            };
            let texts = expected["texts"].as_array().unwrap().iter();
            for (text, ids) in texts.zip(row["ids"].as_array().unwrap()) {
                let whole = text_of(&text["text"]);
                let cut = freely(|work| tokenizer.encode(&whole, None, &options, work)).unwrap();
                assert_eq!(json!(cut.ids), *ids, "{name}: {row} {}", text["text"]);
            }
            let pairs = expected["pairs"].as_array().unwrap().iter();
            for (pair, ids) in pairs.zip(row["pair_ids"].as_array().unwrap()) {
                let (one, other) = (pair["text"].as_str().unwrap(), pair["pair"].as_str().unwrap());
                let cut = freely(|work| tokenizer.encode(one, Some(other), &options, work));
                assert_eq!(json!(cut.unwrap().ids), *ids, "{name}: {row} {pair}");
            }
        }
    }
}

#[test]
fn texts_of_ids_are_those_of_python() {
    for Fixture { name, tokenizer, expected } in fixtures() {
        let rows = expected["decoded"].as_array().unwrap();
        assert!(rows.len() >= 15);
        for row in rows {
            let ids: Vec<u32> = serde_json::from_value(row["ids"].clone()).unwrap();
            for (skip, key) in [(false, "all"), (true, "without_special")] {
                let text = freely(|work| tokenizer.decode(&ids, skip, work)).unwrap();
                assert_eq!(text, row[key], "{name}: {row}");
            }
        }
    }
}

#[test]
fn the_file_says_what_nobody_else_says() {
    for Fixture { name, tokenizer, expected } in fixtures() {
        let text = "good ".repeat(5000);
        let options = EncodeOptions { max_length: None, ..WHOLE };
        let encoded = freely(|work| tokenizer.encode(&text, None, &options, work)).unwrap();
        match expected["file_truncation"].as_u64() {
            Some(most) => assert_eq!(encoded.ids.len() as u64, most, "{name}"),
            None => assert!(encoded.ids.len() >= 5000, "{name}: {}", encoded.ids.len()),
        }
    }
}

#[test]
fn words_that_come_again_have_the_same_ids() {
    let tokenizer = read(&fixture("byte_level.json")).unwrap();
    let options = EncodeOptions { add_special_tokens: false, ..WHOLE };
    let ids = |text: &str| freely(|work| tokenizer.encode(text, None, &options, work)).unwrap().ids;
    // More than are kept, so they take each other's places.
    let words: Vec<_> = (0..5000).map(|number| format!(" word{}", number * 7919)).collect();
    let one_by_one: Vec<u32> = words.iter().flat_map(|word| ids(word)).collect();
    for _ in 0..2 {
        assert_eq!(ids(&words.concat()), one_by_one);
    }
}
