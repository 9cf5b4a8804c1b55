//! Texts in, their embeddings out (models/embed/README.md). Two forms of request are understood:
//!
//! - `{"texts": ["..", ..], "norm": false}` gives `{"vectors": [[..], ..]}`; with `"norm": true`
//!   the vectors have length 1;
//! - what OpenAI's clients send, `{"input": "..", "model": ".."}`, gives OpenAI's answer. Its
//!   vectors have length 1. `input` may be a list of texts, and `encoding_format` `base64`.
//!
//! The host makes the tokens, as the asset `tokenizer.json` says. Texts and tokens do not pass
//! through the plugin.

use gristmill_plugin::numpy::Array;
use gristmill_plugin::tokenizer::{self, Options};
use gristmill_plugin::{
    Blob, Context, Dtype, Failure, Outputs, Prepared, Processor, Request, Response, Tensor,
};
use serde::{Deserialize, Serialize};

/// What OpenAI's answer names as the model.
const MODEL: &str = "wordllama-l2-supercat-256";
/// Numbers of a vector.
const WIDTH: usize = 256;
/// The limits of a request: those of OpenAI for its texts and the tokens of a text. All texts are
/// padded to the longest, so the last one bounds the memory.
const TEXTS_MAX: usize = 2048;
const TOKENS_MAX: u32 = 8192;
const PADDED_MAX: usize = 1 << 19;

struct Embed;

/// What the postprocessor needs to know of the request.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Asked {
    form: Form,
    tokens: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Form {
    Plain { is_normal: bool },
    OpenAi { is_base64: bool },
}

#[derive(Serialize)]
struct Plain<'v> {
    vectors: &'v Tensor,
}

/// OpenAI's answer.
#[derive(Serialize)]
struct List {
    object: &'static str,
    data: Vec<Item>,
    model: &'static str,
    usage: Usage,
}

#[derive(Serialize)]
struct Item {
    object: &'static str,
    index: usize,
    embedding: Embedding,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Embedding {
    Numbers(Tensor),
    /// The elements as little-endian float32.
    Base64(Blob),
}

#[derive(Serialize)]
struct Usage {
    prompt_tokens: u64,
    total_tokens: u64,
}

impl Processor for Embed {
    fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
        let (name, texts, form) = texts_of(request)?;
        // As WordLlama encodes: no token for the begin of a text.
        let options = Options { add_special_tokens: false, ..tokenizer::options() };
        let tokens = tokenizer::encode("tokenizer.json", &texts, &options)?;
        check_lengths(name, &tokens.lengths)?;
        let asked = Asked { form, tokens: tokens.lengths.into_iter().map(u64::from).sum() };
        Ok(Prepared::new()
            .input("input_ids", tokens.ids)
            .input("attention_mask", tokens.attention_mask)
            .state(serde_json::to_vec(&asked)?))
    }

    fn postprocess(
        _context: &Context,
        outputs: Outputs,
        state: Vec<u8>,
    ) -> Result<Response, Failure> {
        let Asked { form, tokens } = serde_json::from_slice(&state)?;
        let vectors = outputs.get("vectors")?;
        let of_length_1 = || Array::from(vectors).normalize(-1).into_tensor();
        match form {
            Form::Plain { is_normal: false } => Response::json(&Plain { vectors }),
            Form::Plain { is_normal: true } => Response::json(&Plain { vectors: &of_length_1()? }),
            Form::OpenAi { is_base64 } => Response::json(&List {
                object: "list",
                data: items(&of_length_1()?, is_base64)?,
                model: MODEL,
                usage: Usage { prompt_tokens: tokens, total_tokens: tokens },
            }),
        }
    }
}

/// The texts, the name that the client has for them, and the form of the answer.
fn texts_of(request: &Request) -> Result<(&'static str, Tensor, Form), Failure> {
    let read = |pointer| request.json_tensor(pointer, &[], Dtype::String);
    let (name, texts, form) = match read("/texts") {
        Ok(texts) => {
            let is_normal = request.json_at("/norm")?.unwrap_or_default();
            ("texts", texts, Form::Plain { is_normal })
        }
        Err(error) if request.json_value("/texts")?.is_some() => return Err(error.into()),
        Err(_) => ("input", read("/input")?, openai(request)?),
    };
    let texts = match texts.dims()[..] {
        [] if name == "input" => Tensor::stack(&[&texts], 0)?,
        [1..=TEXTS_MAX] => texts,
        [count] => {
            let text = format!("{name} has {count} texts; a request may have 1 to {TEXTS_MAX}");
            return Err(Failure::unprocessable(text));
        }
        _ => return Err(Failure::invalid_input(format!("{name} is not a list of texts"))),
    };
    Ok((name, texts, form))
}

/// The form that a client of OpenAI asks for.
fn openai(request: &Request) -> Result<Form, Failure> {
    // Some clients write null for what is not set.
    if let Some(width) = request.json_at::<Option<usize>>("/dimensions")?.flatten()
        && width != WIDTH
    {
        let text = format!("dimensions is {width}; this model's vectors have {WIDTH}");
        return Err(Failure::unprocessable(text));
    }
    let format = request.json_at::<Option<String>>("/encoding_format")?.flatten();
    match format.as_deref() {
        None | Some("float") => Ok(Form::OpenAi { is_base64: false }),
        Some("base64") => Ok(Form::OpenAi { is_base64: true }),
        Some(other) => Err(Failure::invalid_input(format!(
            "encoding_format is {other:?}, not \"float\" or \"base64\""
        ))),
    }
}

/// Refuse texts that are too long. A model that cut them off would give vectors of other texts.
fn check_lengths(name: &str, lengths: &[u32]) -> Result<(), Failure> {
    let longest = lengths.iter().enumerate().max_by_key(|(_, length)| **length);
    let Some((at, length)) = longest else { return Ok(()) };
    if *length > TOKENS_MAX {
        let text = format!("{name}/{at} has {length} tokens; a text may have {TOKENS_MAX}");
        return Err(Failure::unprocessable(text));
    }
    let (count, padded) = (lengths.len(), lengths.len() * *length as usize);
    if padded > PADDED_MAX {
        let text = format!(
            "{count} texts as long as {name}/{at}, the longest, which has {length} tokens, would \
             make {padded} tokens; a request may have {PADDED_MAX}: send long texts apart"
        );
        return Err(Failure::unprocessable(text));
    }
    Ok(())
}

/// The rows of OpenAI's answer, which the host writes.
fn items(vectors: &Tensor, is_base64: bool) -> Result<Vec<Item>, Failure> {
    let [count, width] = vectors.shape()[..] else {
        return Err(Failure::internal(format!("the vectors' shape is {:?}", vectors.dims())));
    };
    let (bytes, row_bytes) = (Blob::from_bytes(&vectors.data()), 4 * u64::from(width));
    let items = (0..count).map(|at| {
        let row = bytes.slice(u64::from(at) * row_bytes, row_bytes);
        let embedding = if is_base64 {
            Embedding::Base64(row)
        } else {
            Embedding::Numbers(row.tensor(Dtype::Float32, &[width])?)
        };
        Ok(Item { object: "embedding", index: at as usize, embedding })
    });
    items.collect()
}

gristmill_plugin::export_processor!(Embed);

#[cfg(test)]
mod tests;
