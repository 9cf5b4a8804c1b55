//! Decoding: the steps that make a text of tokens.

use serde_json::value::RawValue;
use tokenizers::{Decoder, DecoderWrapper};

use crate::error::TextError;
use crate::expression::Expressions;
use crate::limits::{DECODED_BYTES_MAX, DECODING_BYTES};
use crate::normalize::Replace;
use crate::steps::{Step, steps};
use crate::work::{Pace, Work};

/// The types of steps that are known.
const KNOWN: [&str; 8] = [
    "BPEDecoder",
    "ByteFallback",
    "ByteLevel",
    "Fuse",
    "Metaspace",
    "Replace",
    "Strip",
    "WordPiece",
];

/// A step.
pub(crate) enum DecodeStep {
    Replace(Replace),
    Library(DecoderWrapper),
}

/// The steps of the part `decoder`.
pub(crate) fn read(
    part: Option<&RawValue>,
    expressions: &mut Expressions<'_, '_>,
) -> Result<Vec<DecodeStep>, TextError> {
    steps("decoder", part)?.iter().map(|step| read_step(step, expressions)).collect()
}

fn read_step(
    step: &Step<'_>,
    expressions: &mut Expressions<'_, '_>,
) -> Result<DecodeStep, TextError> {
    step.check_kind(&KNOWN)?;
    match step.kind.as_str() {
        "Replace" => Replace::read(step, expressions).map(DecodeStep::Replace),
        _ => step.parsed().map(DecodeStep::Library),
    }
}

/// The text of `tokens`, whose bytes are within the limit.
pub(crate) fn decode(
    steps: &[DecodeStep],
    mut tokens: Vec<String>,
    pace: &Pace<'_>,
    work: &mut Work<'_>,
) -> Result<String, TextError> {
    let bytes: usize = tokens.iter().map(String::len).sum();
    let mut reserved = bytes * DECODING_BYTES;
    (work.reserve)(reserved)?;
    if steps.is_empty() {
        return Ok(tokens.join(" "));
    }
    for step in steps {
        pace.ask()?;
        tokens = step.run(tokens, pace, work)?;
        let bytes: usize = tokens.iter().map(String::len).sum();
        within(bytes)?;
        let more = (bytes * DECODING_BYTES).saturating_sub(reserved);
        (work.reserve)(more)?;
        reserved += more;
    }
    Ok(tokens.concat())
}

/// An error if a text of so many bytes would be too long.
pub(crate) fn within(bytes: usize) -> Result<(), TextError> {
    if bytes <= DECODED_BYTES_MAX {
        return Ok(());
    }
    Err(TextError::TooLarge(format!(
        "the text of these ids has {bytes} bytes; the limit is {DECODED_BYTES_MAX}"
    )))
}

impl DecodeStep {
    fn run(
        &self,
        mut tokens: Vec<String>,
        pace: &Pace<'_>,
        work: &mut Work<'_>,
    ) -> Result<Vec<String>, TextError> {
        let replace = match self {
            // It counts back from the last token.
            Self::Library(_) if tokens.is_empty() => return Ok(tokens),
            Self::Library(step) => {
                let done = step.decode_chain(tokens);
                return done.map_err(|error| TextError::of("decoder", error));
            }
            Self::Replace(replace) => replace,
        };
        let mut bytes = 0;
        for token in &mut tokens {
            let ranges = replace.pattern.find(token, pace)?;
            let removed: usize = ranges.iter().map(ExactSizeIterator::len).sum();
            let length = token.len() - removed + ranges.len() * replace.content.len();
            bytes += length;
            within(bytes)?;
            if ranges.is_empty() {
                continue;
            }
            (work.reserve)(length)?;
            let mut replaced = String::with_capacity(length);
            let mut end = 0;
            for range in ranges {
                pace.ask()?;
                replaced.push_str(&token[end..range.start]);
                replaced.push_str(&replace.content);
                end = range.end;
            }
            replaced.push_str(&token[end..]);
            *token = replaced;
        }
        Ok(tokens)
    }
}
