//! Deeds with tokenizers. One of them is not hostile: it does what the body says, and answers with
//! what it got.

use std::hint::black_box;

use gristmill_plugin::tokenizer::{self, Encoded, OffsetUnit, Options, Padding, Side};
use gristmill_plugin::tokenizer::{Texts, TokenizerError};
use gristmill_plugin::{Dtype, Failure, Prepared, Request, Tensor};
use serde_json::{Value, json};

use crate::{Deed, harmless, pictures};

pub(crate) const DEEDS: &[(&str, Deed)] = &[
    ("tokens", asked),
    ("tokens-rounds", rounds),
    ("tokens-for-ever", |request| for_ever(request)),
    ("tokens-many", |request| many(request)),
];

const ASSET: &str = "tokenizer.json";

/// Not hostile: encodes or decodes what the body names. The answer is the outcome as JSON.
fn asked(request: &Request) -> Result<Prepared, Failure> {
    let body: Value = request.json()?;
    let outcome = outcome(request, &body)?.unwrap_or_else(|error| {
        let kind = match error {
            TokenizerError::NoAsset(_) => "no-asset",
            TokenizerError::Malformed(_) => "malformed",
            TokenizerError::TooLarge(_) => "too-large",
            TokenizerError::InvalidArgument(_) => "invalid-argument",
        };
        json!({ "error": format!("{kind}: {}", error.text()) })
    });
    let mut prepared = harmless()?;
    prepared.state = [pictures::PIXELS, outcome.to_string().as_bytes()].concat();
    Ok(prepared)
}

fn outcome(request: &Request, body: &Value) -> Result<Result<Value, TokenizerError>, Failure> {
    let asset = body["asset"].as_str().unwrap_or(ASSET);
    if let Some(token) = body["token"].as_str() {
        return Ok(tokenizer::token_to_id(asset, token).map(|id| json!(id)));
    }
    if body["decode"].is_array() {
        let ids = request.json_tensor("/decode", &[], Dtype::Int64)?;
        let skip = body["skip"].as_bool().unwrap_or(false);
        return Ok(tokenizer::decode(asset, &ids, skip).map(|texts| json!(texts)));
    }
    let options = options_of(&body["options"]);
    // Texts of a list pass through the plugin, those of a tensor do not.
    let tensor;
    let texts: Texts<'_> = match body["texts"].as_array() {
        Some(texts) if body["pass"] == true => strings(texts).as_slice().into(),
        _ => {
            tensor = request.json_tensor("/texts", &[], Dtype::String)?;
            (&tensor).into()
        }
    };
    let encoded = match body["pairs"].as_array() {
        Some(pairs) => tokenizer::encode_pairs(asset, texts, &strings(pairs), &options),
        None => tokenizer::encode(asset, texts, &options),
    };
    match encoded {
        Ok(encoded) => Ok(Ok(told(&encoded)?)),
        Err(error) => Ok(Err(error)),
    }
}

fn strings(texts: &[Value]) -> Vec<String> {
    texts.iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
}

fn options_of(options: &Value) -> Options {
    let number = |name: &str| options[name].as_u64().map(|number| number as u32);
    let side = |name: &str| match options[name].as_str() {
        Some("left") => Some(Side::Left),
        Some(_) => Some(Side::Right),
        None => None,
    };
    let buckets = options["buckets"].as_array();
    Options {
        max_length: number("max_length"),
        truncate: side("truncate"),
        padding: match (number("fixed"), buckets) {
            (Some(length), _) => Padding::Fixed(length),
            (None, Some(lengths)) => {
                let length = |length: &Value| length.as_u64().unwrap_or_default() as u32;
                Padding::Buckets(lengths.iter().map(length).collect())
            }
            (None, None) => Padding::Longest,
        },
        pad: side("pad"),
        pad_id: number("pad_id"),
        add_special_tokens: options["special"] != false,
        dtype: if options["int32"] == true { Dtype::Int32 } else { Dtype::Int64 },
        offsets: match options["offsets"].as_str() {
            Some("bytes") => Some(OffsetUnit::Bytes),
            Some(_) => Some(OffsetUnit::Characters),
            None => None,
        },
    }
}

fn told(encoded: &Encoded) -> Result<Value, Failure> {
    Ok(json!({
        "shape": encoded.ids.dims(),
        "ids": numbers(&encoded.ids)?,
        "mask": numbers(&encoded.attention_mask)?,
        "types": numbers(&encoded.type_ids)?,
        "lengths": encoded.lengths,
        "offsets": encoded.offsets.as_ref().map(numbers).transpose()?,
    }))
}

fn numbers(tensor: &Tensor) -> Result<Vec<i64>, Failure> {
    Ok(match tensor.dtype() {
        Dtype::Int32 => tensor.view::<i32>()?.as_slice().iter().copied().map(i64::from).collect(),
        _ => tensor.view::<i64>()?.as_slice().to_vec(),
    })
}

/// Not hostile: encodes the body's text as often as the query says.
fn rounds(request: &Request) -> Result<Prepared, Failure> {
    let (text, rounds) = (request.text()?, request.query_value("rounds").unwrap_or_default());
    for _ in 0..rounds.parse::<u32>()? {
        black_box(tokenizer::encode(ASSET, text.as_str(), &tokenizer::options())?);
    }
    harmless()
}

/// Encodes the body's text without end.
fn for_ever(request: &Request) -> ! {
    let text = request.text().unwrap_or_default();
    loop {
        let _ = black_box(tokenizer::encode(ASSET, text.as_str(), &tokenizer::options()));
    }
}

/// More texts than a call may have, longer ones, and rows that are longer than memory.
fn many(request: &Request) -> Result<Prepared, Failure> {
    let text = request.text().unwrap_or_default();
    let rows = Options { padding: Padding::Fixed(u32::MAX), ..tokenizer::options() };
    let refused = [
        tokenizer::encode(ASSET, vec![""; 5000].as_slice(), &tokenizer::options()),
        tokenizer::encode(ASSET, "a".repeat(300 << 10).as_str(), &tokenizer::options()),
        tokenizer::encode(ASSET, text.as_str(), &rows),
    ];
    if refused.iter().any(|outcome| !matches!(outcome, Err(TokenizerError::TooLarge(_)))) {
        return Err(Failure::internal("the host took the texts"));
    }
    harmless()
}
