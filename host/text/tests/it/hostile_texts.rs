//! Texts, and files beside them, that are made to cost much. Each ends within its bounds, or is
//! stopped.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use gristmill_text::{EncodeOptions, Stopped, TEXT_BYTES_MAX, TextError, Tokenizer, Work};
use serde_json::{Value, json};

use crate::support::{changed, encode, fixture, freely, read, stopped};

const PLAIN: EncodeOptions =
    EncodeOptions { add_special_tokens: false, max_length: None, truncate: None, offsets: None };

fn split_by(pattern: &str) -> Tokenizer {
    let step = json!({
        "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false,
    });
    read(&changed("patterns.json", "pre_tokenizer", step)).unwrap()
}

#[test]
fn repeats_end() {
    // A search that goes back would try each way to read the text.
    let tokenizer = split_by(r"(?i)((a|b|ab)*)*c");
    encode(&tokenizer, &"ab".repeat(50_000), &PLAIN).unwrap();
}

#[test]
fn expressions_know_lines() {
    let replace = json!({ "type": "Replace", "pattern": { "Regex": "^b|d$" }, "content": "c" });
    let lines = read(&changed("patterns.json", "normalizer", replace)).unwrap();
    let plain = read(&fixture("patterns.json")).unwrap();
    let ids = |tokenizer, text| encode(tokenizer, text, &PLAIN).unwrap().ids;
    assert_eq!(ids(&lines, "bb ad\nbdd"), ids(&plain, "cb ac\ncdc"));
}

#[test]
fn a_search_that_may_cost_much_is_refused_or_moved_before_it_begins() {
    // The automaton that a search makes as it goes gets too large for this one.
    let replace =
        json!({ "type": "Replace", "pattern": { "Regex": "a[ab]{250}c" }, "content": "" });
    let steps = json!({ "type": "Sequence", "decoders": [json!({ "type": "Fuse" }), replace] });
    let tokenizer = read(&changed("patterns.json", "decoder", steps)).unwrap();
    let ids = vec![tokenizer.token_to_id("a").unwrap(); 200_000];
    let refused = freely(|work| tokenizer.decode(&ids, false, work)).unwrap_err().to_string();
    assert!(refused.starts_with("decoder[1].pattern has "), "{refused}");
    assert!(refused.contains("a text of 200000 bytes: the limit is 33554432 for"), "{refused}");
    let stopped = |ids: &[u32], search_cost_max| {
        let mut work = Work { check: &|| Ok(()), search_cost_max, reserve: &mut |_| Ok(()) };
        tokenizer.decode(ids, false, &mut work).is_err_and(|why| why == TextError::Stopped(Stopped))
    };
    assert!(stopped(&ids[..500], 100_000));
    assert!(!stopped(&ids[..100], 100_000) && !stopped(&ids[..500], usize::MAX));
}

#[test]
fn work_is_asked_between_matches_and_between_words() {
    for tokenizer in [split_by(r"[a]*b|a"), read(&fixture("word_piece.json")).unwrap()] {
        let text = "a".repeat(100_000) + &" a.".repeat(10_000);
        let asked = AtomicUsize::new(0);
        let check = || {
            asked.fetch_add(1, Ordering::Relaxed);
            Err(Stopped)
        };
        let stopped = tokenizer.encode(
            &text,
            None,
            &PLAIN,
            &mut Work { check: &check, search_cost_max: usize::MAX, reserve: &mut |_| Ok(()) },
        );
        assert_eq!(stopped.unwrap_err(), TextError::Stopped(Stopped));
        assert_eq!(asked.into_inner(), 1);
    }
}

#[test]
fn a_text_without_spaces_ends() {
    let text = "a".repeat(TEXT_BYTES_MAX);
    for name in ["word_piece", "byte_level", "patterns", "byte_fallback", "unigram"] {
        let tokenizer = read(&fixture(&format!("{name}.json"))).unwrap();
        assert!(!encode(&tokenizer, &text, &PLAIN).unwrap().ids.is_empty(), "{name}");
        let refused = encode(&tokenizer, &(text.clone() + "a"), &PLAIN).unwrap_err();
        let why = "a text has 131073 bytes; the limit is 131072";
        assert_eq!(refused, TextError::TooLarge(why.into()), "{name}");
    }
}

#[test]
fn texts_grow_within_bounds() {
    let replace = |from: &str, to: &str| json!({ "type": "Replace", "pattern": { "String": from }, "content": to });
    let steps = vec![replace("a", &"a".repeat(200)); 20];
    let bomb = json!({ "type": "Sequence", "normalizers": steps });
    let tokenizer = read(&changed("patterns.json", "normalizer", bomb)).unwrap();
    let refused = encode(&tokenizer, &"a".repeat(1000), &PLAIN).unwrap_err();
    let why = "the normalizer makes 200000 bytes of a text; the limit for this text is 8096";
    assert_eq!(refused, TextError::TooLarge(why.into()));
    encode(&tokenizer, "b", &PLAIN).unwrap();
    // A character that becomes eleven times as long is measured before it is made.
    let steps = [replace("a", "\u{fdfa}"), json!({ "type": "NFKD" })];
    let bomb = json!({ "type": "Sequence", "normalizers": steps });
    let tokenizer = read(&changed("patterns.json", "normalizer", bomb)).unwrap();
    let refused = encode(&tokenizer, &"a".repeat(5000), &PLAIN).unwrap_err();
    let why = "the normalizer makes 165000 bytes of a text; the limit for this text is 24096";
    assert_eq!(refused, TextError::TooLarge(why.into()));
    // Decoding likewise.
    let decoder =
        json!({ "type": "Sequence", "decoders": vec![replace("a", &"a".repeat(200)); 4] });
    let tokenizer = read(&changed("patterns.json", "decoder", decoder)).unwrap();
    let id = tokenizer.token_to_id("a").unwrap();
    let refused = freely(|work| tokenizer.decode(&[id; 9], false, work)).unwrap_err();
    assert!(matches!(&refused, TextError::TooLarge(why) if why.contains("the limit is 4194304")));
}

#[test]
fn a_long_text_is_replaced_in_one_pass_that_can_be_stopped() {
    let replace = |from: &str, to: &str| json!({ "type": "Replace", "pattern": { "String": from }, "content": to });
    let steps = [json!({ "type": "Fuse" }), replace("a", "bb")];
    let decoder = json!({ "type": "Sequence", "decoders": steps });
    let tokenizer = read(&changed("patterns.json", "decoder", decoder)).unwrap();
    let ids = vec![tokenizer.token_to_id("a").unwrap(); 200_000];
    let text = freely(|work| tokenizer.decode(&ids, false, work)).unwrap();
    assert_eq!(text, "bb".repeat(200_000));
    let reserved = Cell::new(0);
    let mut reserve = |bytes: usize| -> Result<(), Stopped> {
        reserved.set(reserved.get() + bytes);
        Ok(())
    };
    let mut work = Work { check: &|| Ok(()), search_cost_max: usize::MAX, reserve: &mut reserve };
    tokenizer.decode(&ids, false, &mut work).unwrap();
    assert!(reserved.get() > 10 * text.len(), "{}", reserved.get());
    assert_eq!(stopped(|work| tokenizer.decode(&ids, false, work)), Err(Stopped.into()));
}

#[test]
fn what_is_put_before_words_is_counted() {
    let split = json!({
        "type": "Split", "pattern": { "Regex": "." }, "behavior": "Isolated", "invert": false,
    });
    let space = json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always" });
    let reserved = |steps: &[&Value]| {
        let steps = json!({ "type": "Sequence", "pretokenizers": steps });
        let tokenizer = read(&changed("unigram.json", "pre_tokenizer", steps)).unwrap();
        let all = Cell::new(0);
        let mut reserve = |bytes: usize| -> Result<(), Stopped> {
            all.set(all.get() + bytes);
            Ok(())
        };
        let mut work =
            Work { check: &|| Ok(()), search_cost_max: usize::MAX, reserve: &mut reserve };
        tokenizer.encode(&"a".repeat(1000), None, &PLAIN, &mut work).unwrap();
        all.get()
    };
    let (one, each) = (reserved(&[&space, &split]), reserved(&[&split, &space]));
    assert!(each > one + 400_000, "{each} and {one}");
}

#[test]
fn short_lengths_make_no_overflow() {
    // The library keeps all other parts of the same length, and makes pairs of them: 10^9 here.
    let truncation = json!({
        "direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0,
    });
    let tokenizer = read(&changed("patterns.json", "truncation", truncation)).unwrap();
    let text = "a b ".repeat(16_000);
    let encoded = freely(|work| tokenizer.encode(&text, Some(&text), &PLAIN, work)).unwrap();
    assert_eq!(encoded.ids.len(), 1);
}

#[test]
fn memory_is_counted_before_it_is_taken() {
    let tokenizer = read(&fixture("patterns.json")).unwrap();
    let reserved = |text: &str| {
        let all = Cell::new(0);
        let mut reserve = |bytes: usize| -> Result<(), Stopped> {
            all.set(all.get() + bytes);
            Ok(())
        };
        let mut work =
            Work { check: &|| Ok(()), search_cost_max: usize::MAX, reserve: &mut reserve };
        tokenizer.encode(text, None, &PLAIN, &mut work).unwrap();
        all.get()
    };
    let (short, long) = (reserved("a"), reserved(&"a ".repeat(50_000)));
    // Most of it is for searches with the expression.
    assert!(short < 16 << 20, "{short}");
    assert!((50_000_000..120_000_000).contains(&long), "{long}");
    let mut refuse = |_: usize| Err(Stopped);
    let mut work = Work { check: &|| Ok(()), search_cost_max: usize::MAX, reserve: &mut refuse };
    let refused = tokenizer.encode("a", None, &PLAIN, &mut work);
    assert_eq!(refused.unwrap_err(), TextError::Stopped(Stopped));
}

#[test]
fn ids_out_of_range_are_left_out() {
    for name in ["word_piece", "byte_level", "patterns", "byte_fallback", "unigram"] {
        let tokenizer = read(&fixture(&format!("{name}.json"))).unwrap();
        let decode = |ids: &[u32]| freely(|work| tokenizer.decode(ids, false, work));
        assert_eq!(decode(&[u32::MAX, 1 << 20]).unwrap(), "", "{name}");
        assert_eq!(decode(&[]).unwrap(), "", "{name}");
        let refused = decode(&vec![0; 300_000]).unwrap_err();
        assert!(matches!(&refused, TextError::TooLarge(why) if why.starts_with("300000 ids")));
    }
}

#[test]
fn steps_that_the_library_fails_on_are_errors_of_the_text() {
    let strip = json!({ "type": "Strip", "content": "a", "start": 0, "stop": 9 });
    let tokenizer = read(&changed("patterns.json", "decoder", strip)).unwrap();
    let id = tokenizer.token_to_id("a").unwrap();
    let failed = freely(|work| tokenizer.decode(&[id], false, work)).unwrap_err();
    assert!(matches!(&failed, TextError::Malformed(why) if why.contains("failed on")));
}
