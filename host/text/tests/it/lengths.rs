//! Padding and truncation, as far as the file decides on them.

use gristmill_text::{EncodeOptions, OffsetUnit, Side, TextError};
use serde_json::json;

use crate::support::{changed, encode, fixture, freely, read};

#[test]
fn padding_is_as_the_file_says() {
    let tokenizer = read(&fixture("word_piece.json")).unwrap();
    assert_eq!((tokenizer.pad_id(), tokenizer.pad_type_id()), (0, 0));
    assert_eq!(tokenizer.pad_side(), Side::Right);
    let padding = json!({
        "strategy": "BatchLongest", "direction": "Left", "pad_to_multiple_of": null,
        "pad_id": 7, "pad_type_id": 1, "pad_token": "x",
    });
    let left = read(&changed("word_piece.json", "padding", padding)).unwrap();
    assert_eq!((left.pad_id(), left.pad_type_id(), left.pad_side()), (7, 1, Side::Left));
    // Without `padding`, a usual token pads.
    let usual = read(&fixture("byte_level.json")).unwrap();
    assert_eq!(Some(usual.pad_id()), usual.token_to_id("<pad>"));
    assert_ne!(usual.pad_id(), 0);
}

#[test]
fn offsets_count_characters_or_bytes() {
    let tokenizer = read(&fixture("word_piece.json")).unwrap();
    let offsets = |offsets| {
        let options = EncodeOptions { offsets: Some(offsets), ..EncodeOptions::default() };
        encode(&tokenizer, "é the", &options).unwrap().offsets
    };
    assert_eq!(offsets(OffsetUnit::Characters), [(0, 1), (2, 5)]);
    assert_eq!(offsets(OffsetUnit::Bytes), [(0, 2), (3, 6)]);
}

#[test]
fn special_tokens_need_room() {
    let tokenizer = read(&fixture("word_piece.json")).unwrap();
    let options =
        EncodeOptions { add_special_tokens: true, max_length: Some(1), ..EncodeOptions::default() };
    let refused = encode(&tokenizer, "the", &options).unwrap_err();
    let text = "max-length is 1, but the tokenizer adds 2 special tokens";
    assert_eq!(refused, TextError::InvalidArgument(text.into()));
    let options = EncodeOptions { max_length: Some(2), ..options };
    assert_eq!(encode(&tokenizer, "the", &options).unwrap().ids, [2, 3]);
}

#[test]
fn one_text_of_a_pair_can_be_the_only_one_that_is_cut_off() {
    let truncation = json!({
        "direction": "Right", "max_length": 6, "strategy": "OnlySecond", "stride": 0,
    });
    let tokenizer = read(&changed("word_piece.json", "truncation", truncation)).unwrap();
    let options = EncodeOptions { add_special_tokens: true, ..EncodeOptions::default() };
    let pair =
        |text: &str, pair: &str| freely(|work| tokenizer.encode(text, Some(pair), &options, work));
    let cut = pair("the server", "the server the server").unwrap();
    assert_eq!(cut.type_ids, [0, 0, 0, 0, 1, 1]);
    let refused = pair("the server the server the server", "the").unwrap_err();
    assert!(matches!(&refused, TextError::InvalidArgument(why) if why.contains("only one text")));
    assert!(encode(&tokenizer, &"the ".repeat(9), &options).is_err());
}
