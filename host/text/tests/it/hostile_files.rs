//! Files that are broken, or made to cost much. Each is refused, and the error names what is wrong.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gristmill_text::{FILE_BYTES_MAX, Stopped, TextError, Tokenizer, Work};
use serde_json::{Value, json};

use crate::support::{changed, fixture, freely, read, stopped};

/// Why the file is refused.
#[track_caller]
fn refused(file: &Value) -> String {
    read(file).map(|tokenizer| format!("{tokenizer:?} was read")).unwrap_err().to_string()
}

/// Why a WordPiece, BPE or Unigram is refused with this part.
#[track_caller]
fn refused_with(name: &str, part: &str, value: Value) -> String {
    refused(&changed(name, part, value))
}

#[test]
fn what_is_no_tokenizer_is_named() {
    let why = |file: &[u8]| freely(|work| Tokenizer::read(file, work)).unwrap_err().to_string();
    assert!(why(b"").starts_with("it is not a tokenizer.json: EOF while parsing"));
    assert!(why(b"\xff{}").starts_with("it is not a tokenizer.json: "));
    assert_eq!(why(b"{}"), "it is not a tokenizer.json: missing field `model` at line 1 column 2");
    let large = vec![b' '; FILE_BYTES_MAX + 1];
    assert_eq!(why(&large), "the file has 67108865 bytes; the limit is 67108864");
}

#[test]
fn parts_are_named_with_their_places() {
    let unknown =
        json!({ "type": "Sequence", "normalizers": [{ "type": "NFC" }, { "type": "X" }] });
    let why = refused_with("word_piece.json", "normalizer", unknown);
    assert!(
        why.starts_with("normalizer[1].type is \"X\": must be one of BertNormalizer, "),
        "{why}"
    );
    let why = refused_with("word_piece.json", "pre_tokenizer", json!({ "type": "Split" }));
    assert!(why.starts_with("pre_tokenizer (Split): missing field `pattern`"), "{why}");
    let why = refused_with("word_piece.json", "post_processor", json!({ "single": [] }));
    assert!(why.starts_with("post_processor: missing field `type`"), "{why}");
    let why = refused_with("word_piece.json", "decoder", json!(7));
    assert!(why.starts_with("decoder: invalid type: integer `7`"), "{why}");
    let why = refused_with("word_piece.json", "padding", json!({ "strategy": 1 }));
    assert!(why.starts_with("padding: "), "{why}");
    let why = refused_with("word_piece.json", "model.type", json!("GPT"));
    let text = "model.type is \"GPT\": must be one of BPE, Unigram, WordLevel, WordPiece";
    assert_eq!(why, text);
    let why = refused_with("word_piece.json", "model.vocab", json!({ "a": -1 }));
    assert!(why.starts_with("model.vocab: invalid value: integer `-1`"), "{why}");
}

#[test]
fn merges_fit_the_vocabulary() {
    let merges = |merges: Value| refused_with("byte_level.json", "model.merges", merges);
    assert!(merges(json!(["a b c"])).starts_with("model.merges[0] is \"a b c\": must be two"));
    let why = merges(json!([["a", "nowhere"]]));
    assert!(
        why.starts_with("model.merges[0], \"a\" and \"nowhere\": the vocabulary must"),
        "{why}"
    );
    // The library would cut within a character, and show the broken text.
    let model = json!({
        "type": "BPE", "vocab": { "a": 0, "é": 1 }, "merges": [["a", "é"]],
        "continuing_subword_prefix": "#",
    });
    let why = refused(&json!({ "model": model }));
    assert!(why.ends_with("the second does not begin with continuing_subword_prefix"), "{why}");
    let why = refused_with("byte_level.json", "model.dropout", json!(0.5));
    assert!(why.starts_with("model.dropout must be null"), "{why}");
    let twice = json!({ "type": "BPE", "vocab": { "a": 0, "b": 0 }, "merges": [] });
    let why = refused(&json!({ "model": twice }));
    assert_eq!(why, "model.vocab has the same id for two tokens");
}

#[test]
fn costly_vocabularies_are_refused() {
    let long = "a".repeat(2000);
    let why = refused_with("unigram.json", "model.vocab", json!([["<unk>", 0.0], [long, -1.0]]));
    assert!(why.ends_with("has 2000 bytes; the limit is 128"), "{why}");
    // Each byte of a text would be the begin of forty tokens.
    let towers: Vec<_> = (1..=40).map(|length| json!(["a".repeat(length), -1.0])).collect();
    let why = refused_with("unigram.json", "model.vocab", json!(towers));
    assert!(why.starts_with("model.vocab has 40 tokens of which each begins"), "{why}");
    // Fewer are read, but are slow from the begin.
    let towers = (1..=30).map(|length| json!(["a".repeat(4 * length), -1.0]));
    let unknown = std::iter::once(json!(["<unk>", 0.0]));
    let vocab = json!(unknown.chain(towers).collect::<Vec<_>>());
    assert!(read(&changed("unigram.json", "model.vocab", vocab)).unwrap().is_slow());
    assert!(!read(&fixture("unigram.json")).unwrap().is_slow());
    let why = refused_with("byte_level.json", "model.vocab", json!({ long.as_str(): 0 }));
    assert!(why.ends_with("has 2000 bytes; the limit is 1024"), "{why}");
    let why = refused_with("word_piece.json", "model.max_input_chars_per_word", json!(100_000));
    assert_eq!(why, "model.max_input_chars_per_word is 100000; the limit is 200");
    let why = refused_with("word_piece.json", "model.unk_token", json!(long));
    assert_eq!(why, "model.unk_token has 2000 bytes; the limit is 64");
    let token = |at: usize, more: &str| {
        json!({
            "id": at, "content": format!("<{at}{more}>"), "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true,
        })
    };
    let long: Vec<_> = (0..3000).map(|at| token(at, &"x".repeat(1000))).collect();
    let why = refused_with("word_piece.json", "added_tokens", json!(long));
    assert!(why.starts_with("added_tokens has 3000 tokens of "), "{why}");
    // As many as a model of speech has.
    let many: Vec<_> = (0..30_000).map(|at| token(at, "")).collect();
    read(&changed("word_piece.json", "added_tokens", json!(many))).unwrap();
}

#[test]
fn costly_added_tokens_are_refused() {
    let added = |content: &str, normalized: bool, [lstrip, rstrip]: [bool; 2]| {
        let token = json!({
            "id": 0, "content": content, "single_word": false, "lstrip": lstrip, "rstrip": rstrip,
            "normalized": normalized, "special": false,
        });
        changed("word_piece.json", "added_tokens", json!([token]))
    };
    // Each of many spaces would get all that follow it.
    for content in [" ", "\u{3000}", " x", "x\n"] {
        for strips in [[true, false], [false, true]] {
            let why = refused(&added(content, false, strips));
            assert!(why.ends_with("so it must not begin or end with white space"), "{why}");
        }
        read(&added(content, false, [false; 2])).unwrap();
    }
    // The normalizer makes a space of it.
    let mut file = added("_", true, [false, true]);
    file["normalizer"] = json!({ "type": "Replace", "pattern": { "String": "_" }, "content": " " });
    assert!(refused(&file).ends_with("so it must not begin or end with white space"));
    let why = refused(&added(&"x".repeat(2000), false, [false; 2]));
    assert!(why.ends_with("has 2000 bytes; the limit is 1024"), "{why}");
}

#[test]
fn expressions_that_could_run_for_ever_are_refused() {
    let split = |pattern: &str| {
        let step = json!({
            "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated",
            "invert": false,
        });
        changed("patterns.json", "pre_tokenizer", step)
    };
    for pattern in [
        "(?:(?:(?=a)(?=a)){99999999999}){99999999999}",
        "(?:(?=.*)(?=.*)a)*",
        r"a(?!\S)",
        r"\s+(?!\S)",
        r"x\s+(?!\S)|\s+",
        "(?<=a)b",
        "(?<!a)b",
        "(?>a|b)c",
        r"(a)\1",
        "[ab]?+c",
        "a++b",
        "(?m)a.",
        "(?i-m:a)b",
        "(?:a{99}){99}",
        "(?:(a{99})b){99}",
        "[ab]{9999}",
        r"(?:(\p{L}{15})x){15}",
    ] {
        let why = refused(&split(pattern));
        assert!(why.starts_with("pre_tokenizer.pattern \""), "{pattern}: {why}");
    }
    let why = refused(&split("a(?=b)"));
    assert!(why.contains(r"not supported, except `\s+(?!\S)|\s+` at the end"), "{why}");
    // Those of GPT-2, Llama 3 and GPT-4o.
    for pattern in [
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        concat!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
        concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*",
            r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+",
            r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
    ] {
        read(&split(pattern)).unwrap();
    }
    let replace = json!({ "type": "Replace", "pattern": { "Regex": r"\d" }, "content": "0" });
    let many = json!({ "type": "Sequence", "normalizers": vec![replace; 9] });
    let why = refused_with("word_piece.json", "normalizer", many);
    assert_eq!(why, "normalizer[8].pattern: the limit is 8 regular expressions in a file");
}

#[test]
fn costly_steps_are_refused() {
    let normalizer = |step: Value| refused_with("word_piece.json", "normalizer", step);
    let replace = |pattern: Value, content: String| {
        normalizer(json!({ "type": "Replace", "pattern": pattern, "content": content }))
    };
    let why = replace(json!({ "String": "a" }), "b".repeat(1000));
    assert_eq!(why, "normalizer.content has 1000 bytes; the limit is 256");
    let why = replace(json!({ "Regex": "(" }), String::new());
    assert!(why.starts_with("normalizer.pattern \"(\": unclosed group"), "{why}");
    assert!(replace(json!({ "Regex": "a".repeat(3000) }), String::new()).contains("2048"));
    assert!(replace(json!({ "String": "" }), String::new()).contains("empty text"));
    // Nested repetitions, which compile to gigabytes.
    let nested = r"(?:(?:(?:\w{100}){100}){100})";
    assert!(replace(json!({ "Regex": nested }), String::new()).starts_with("normalizer.pattern"));
    let why = normalizer(json!({ "type": "Prepend", "prepend": "b".repeat(1000) }));
    assert_eq!(why, "normalizer.prepend has 1000 bytes; the limit is 256");
    let many = vec![json!({ "type": "NFC" }); 40];
    let why = normalizer(json!({ "type": "Sequence", "normalizers": many }));
    assert_eq!(why, "normalizer[32]: the limit is 32 steps");
    let mut deep = json!({ "type": "NFC" });
    for _ in 0..20 {
        deep = json!({ "type": "Sequence", "normalizers": [deep] });
    }
    assert!(normalizer(deep).ends_with("more than 8 sequences stand within one another"));
    // Far deeper than serde_json's own limit.
    let levels = 100_000;
    let deep = format!(
        "{{\"model\":{{}},\"normalizer\":{}1{}}}",
        "{\"type\":\"Sequence\",\"normalizers\":[".repeat(levels),
        "]}".repeat(levels),
    );
    assert!(freely(|work| Tokenizer::read(deep.as_bytes(), work)).is_err());
    // Each would make every text longer, however short the texts before it made them.
    for (kind, step) in [
        ("ByteLevel", json!({ "add_prefix_space": false, "trim_offsets": true })),
        ("Metaspace", json!({ "replacement": "▁", "prepend_scheme": "always" })),
    ] {
        let mut step = step;
        step["type"] = json!(kind);
        let twice = json!({ "type": "Sequence", "pretokenizers": [step.clone(), step] });
        let why = refused_with("word_piece.json", "pre_tokenizer", twice);
        assert_eq!(why, format!("pre_tokenizer: there are two of type {kind}"));
    }
    let chunks = json!({ "type": "FixedLength", "length": 0 });
    let why = refused_with("word_piece.json", "pre_tokenizer", chunks);
    assert!(why.starts_with("pre_tokenizer.type is \"FixedLength\": must be one of "), "{why}");
}

#[test]
fn a_precompiled_map_keeps_its_word() {
    let map = |bytes: &[u8]| {
        let charsmap = STANDARD.encode(bytes);
        let step = json!({ "type": "Precompiled", "precompiled_charsmap": charsmap });
        changed("word_piece.json", "normalizer", step)
    };
    // It claims a trie of 4 GB.
    let why = refused(&map(&[0xfc, 0xff, 0xff, 0xff, 0]));
    assert_eq!(why, "normalizer.precompiled_charsmap is cut short");
    let texts = [&[4, 0, 0, 0, 0, 0, 0, 0][..], &[b'a'; 100]].concat();
    let why = refused(&map(&texts));
    assert_eq!(why, "normalizer.precompiled_charsmap has a text of more than 64 bytes");
    let step = json!({ "type": "Precompiled", "precompiled_charsmap": "%" });
    let why = refused_with("word_piece.json", "normalizer", step);
    assert!(why.starts_with("normalizer.precompiled_charsmap is not in base64: "), "{why}");
    // The library reads past the end of this trie, at the first text.
    let broken = read(&map(&[4, 0, 0, 0, 0, 0xff, 0xff, 0, 0])).unwrap();
    let refused = freely(|work| broken.encode("abc", None, &Default::default(), work));
    let text = "the library of tokenizers failed on this text";
    assert_eq!(refused, Err(TextError::Malformed(text.into())));
    assert!(!gristmill_text::is_tokenizing());
}

#[test]
fn templates_have_what_they_name() {
    let template = |single: Value| {
        let step = json!({
            "type": "TemplateProcessing", "single": single,
            "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }],
            "special_tokens": { "[X]": { "id": "[X]", "ids": [1], "tokens": ["[X]"] } },
        });
        refused_with("word_piece.json", "post_processor", step)
    };
    let sequence = |id: &str| json!({ "Sequence": { "id": id, "type_id": 0 } });
    let special = |id: &str| json!({ "SpecialToken": { "id": id, "type_id": 0 } });
    assert!(template(json!([special("[Y]")])).contains("single[0]: special_tokens has no \"[Y]\""));
    assert!(template(json!([sequence("B")])).contains("single[0]: the sequence \"B\" must be"));
    let twice = template(json!([sequence("A"), sequence("A")]));
    assert!(twice.contains("single[1]: the sequence \"A\" stands here a second time"), "{twice}");
    let many = template(json!(vec![special("[X]"); 100]));
    assert!(many.ends_with("has 100 tokens; the limit is 64"), "{many}");
}

#[test]
fn reading_counts_its_memory_and_can_be_stopped() {
    let file = fixture("unigram.json").to_string();
    let read = |reserve: &mut dyn FnMut(usize) -> Result<(), Stopped>| {
        Tokenizer::read(
            file.as_bytes(),
            &mut Work { check: &|| Ok(()), search_cost_max: usize::MAX, reserve },
        )
    };
    let mut reserved = 0;
    let tokenizer = read(&mut |bytes| {
        reserved += bytes;
        Ok(())
    });
    let bytes = tokenizer.unwrap().bytes();
    assert!(bytes > 100_000 && bytes <= reserved, "{bytes} of {reserved}");
    // Before anything is parsed.
    let brackets = "[".repeat(1000);
    let mut first = None;
    let mut reserve = |bytes: usize| -> Result<(), Stopped> {
        first.get_or_insert(bytes);
        Ok(())
    };
    let mut work = Work { check: &|| Ok(()), search_cost_max: usize::MAX, reserve: &mut reserve };
    Tokenizer::read(brackets.as_bytes(), &mut work).unwrap_err();
    assert_eq!(first, Some(2000));
    assert_eq!(read(&mut |_| Err(Stopped)).unwrap_err(), TextError::Stopped(Stopped));
    let refused = stopped(|work| Tokenizer::read(file.as_bytes(), work));
    assert_eq!(refused.unwrap_err(), TextError::Stopped(Stopped));
}
