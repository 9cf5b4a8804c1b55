//! Normalizing: the steps that change a text before it is split.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokenizers::normalizers::Precompiled;
use tokenizers::{NormalizedString, Normalizer, NormalizerWrapper};
use unicode_normalization_alignments::char::decompose_compatible;

use crate::error::TextError;
use crate::expression::{Expression, Expressions, Found, Written};
use crate::limits::{GROWTH_MAX, INSERTED_BYTES_MAX, MAPPED_BYTES_MAX};
use crate::steps::{Step, steps};
use crate::work::Pace;

/// The types of steps that are known.
const KNOWN: [&str; 13] = [
    "BertNormalizer",
    "ByteLevel",
    "Lowercase",
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "Nmt",
    "Precompiled",
    "Prepend",
    "Replace",
    "Strip",
    "StripAccents",
];

/// A step.
pub(crate) enum NormalizeStep {
    Replace(Replace),
    /// A map of characters that SentencePiece compiled.
    Precompiled(Precompiled),
    Library(NormalizerWrapper),
}

/// Each text that an expression matches becomes another one.
pub(crate) struct Replace {
    pub(crate) pattern: Expression,
    pub(crate) content: String,
}

#[derive(Deserialize)]
struct ReplaceFile {
    pattern: Written,
    content: String,
}

#[derive(Deserialize)]
struct PrecompiledFile {
    precompiled_charsmap: String,
}

/// The steps of the part `normalizer`.
pub(crate) fn read(
    part: Option<&RawValue>,
    expressions: &mut Expressions<'_, '_>,
) -> Result<Vec<NormalizeStep>, TextError> {
    steps("normalizer", part)?.iter().map(|step| read_step(step, expressions)).collect()
}

fn read_step(
    step: &Step<'_>,
    expressions: &mut Expressions<'_, '_>,
) -> Result<NormalizeStep, TextError> {
    step.check_kind(&KNOWN)?;
    match step.kind.as_str() {
        "Replace" => Replace::read(step, expressions).map(NormalizeStep::Replace),
        "Precompiled" => {
            let PrecompiledFile { precompiled_charsmap } = step.parsed()?;
            precompiled(&precompiled_charsmap).map(NormalizeStep::Precompiled).map_err(|why| {
                let place = &step.place;
                TextError::Malformed(format!("{place}.precompiled_charsmap {why}"))
            })
        }
        _ => {
            let normalizer: NormalizerWrapper = step.parsed()?;
            if let NormalizerWrapper::Prepend(prepend) = &normalizer {
                check_inserted(&format!("{}.prepend", step.place), &prepend.prepend)?;
            }
            Ok(NormalizeStep::Library(normalizer))
        }
    }
}

impl Replace {
    pub(crate) fn read(
        step: &Step<'_>,
        expressions: &mut Expressions<'_, '_>,
    ) -> Result<Self, TextError> {
        let ReplaceFile { pattern, content } = step.parsed()?;
        check_inserted(&format!("{}.content", step.place), &content)?;
        Ok(Self { pattern: pattern.compile(&step.place, expressions)?, content })
    }
}

fn check_inserted(place: &str, text: &str) -> Result<(), TextError> {
    if text.len() <= INSERTED_BYTES_MAX {
        return Ok(());
    }
    let bytes = text.len();
    Err(TextError::TooLarge(format!(
        "{place} has {bytes} bytes; the limit is {INSERTED_BYTES_MAX}"
    )))
}

/// The map in `text`. The library believes the length that it claims, and looks for the end of
/// each of its texts again for each character.
fn precompiled(text: &str) -> Result<Precompiled, String> {
    let bytes = STANDARD.decode(text).map_err(|error| format!("is not in base64: {error}"))?;
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else {
        return Err("is cut short".into());
    };
    let trie_bytes = u32::from_le_bytes(*length) as usize / 4 * 4;
    let Some(texts) = rest.get(trie_bytes..) else {
        return Err("is cut short".into());
    };
    if texts.split(|byte| *byte == 0).any(|text| text.len() > MAPPED_BYTES_MAX) {
        return Err(format!("has a text of more than {MAPPED_BYTES_MAX} bytes"));
    }
    Precompiled::from(&bytes).map_err(|error| format!("is broken: {error}"))
}

/// The bytes that `map` makes of `text`, at most.
fn mapped_bytes(map: &Precompiled, text: &str) -> usize {
    // The map is asked for graphemes of less than six bytes, and for characters. The shortest key
    // that a text begins with decides.
    let bytes_at = |(at, character): (usize, char)| {
        let end = text.floor_char_boundary(at + 5);
        let mapped = map.transform(&text[at..end]).map_or(0, str::len);
        mapped.max(character.len_utf8())
    };
    text.char_indices().map(bytes_at).sum()
}

/// The bytes that NFKD makes of `text`; NFKC makes no more. The other steps of the library make at
/// most three times as many bytes of a text, which [`NORMALIZING_BYTES`] counts.
///
/// [`NORMALIZING_BYTES`]: crate::limits::NORMALIZING_BYTES
fn decomposed_bytes(text: &str) -> usize {
    let mut bytes = 0;
    for character in text.chars() {
        decompose_compatible(character, |part| bytes += part.len_utf8());
    }
    bytes
}

/// One run of the steps, over all parts of a text. The library drops the errors of normalizers, so
/// the first one is kept here.
pub(crate) struct Run<'a> {
    steps: &'a [NormalizeStep],
    pace: &'a Pace<'a>,
    /// The bytes by which the parts may grow beyond [`GROWTH_MAX`].
    slack: AtomicUsize,
    failed: OnceLock<TextError>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(steps: &'a [NormalizeStep], pace: &'a Pace<'a>, slack: usize) -> Self {
        Self { steps, pace, slack: AtomicUsize::new(slack), failed: OnceLock::new() }
    }

    /// The error that ended it, if one did.
    pub(crate) fn end(self) -> Result<(), TextError> {
        self.failed.into_inner().map_or(Ok(()), Err)
    }

    fn run(&self, text: &mut NormalizedString) -> Result<(), TextError> {
        let limit = GROWTH_MAX * text.len_original();
        let most = limit + self.slack.load(Ordering::Relaxed);
        for step in self.steps {
            self.pace.ask()?;
            step.run(text, most, self.pace)?;
            within(text.len(), most)?;
        }
        let over = text.len().saturating_sub(limit);
        self.slack.fetch_sub(over, Ordering::Relaxed);
        Ok(())
    }
}

impl Normalizer for Run<'_> {
    fn normalize(&self, text: &mut NormalizedString) -> tokenizers::Result<()> {
        if let Some(error) = self.failed.get() {
            return Err(error.clone().into());
        }
        self.run(text).map_err(|error| {
            let _ = self.failed.set(error.clone());
            error.into()
        })
    }
}

impl NormalizeStep {
    /// Run it. The text becomes at most `most` bytes long.
    fn run(
        &self,
        text: &mut NormalizedString,
        most: usize,
        pace: &Pace<'_>,
    ) -> Result<(), TextError> {
        let done = match self {
            Self::Replace(Replace { pattern, content }) => {
                let ranges = pattern.find(text.get(), pace)?;
                let removed: usize = ranges.iter().map(ExactSizeIterator::len).sum();
                within(text.len() - removed + ranges.len() * content.len(), most)?;
                text.replace(Found { ranges: &ranges, invert: false }, content)
            }
            Self::Precompiled(map) => {
                within(mapped_bytes(map, text.get()), most)?;
                map.normalize(text)
            }
            Self::Library(step) => {
                if matches!(step, NormalizerWrapper::NFKC(_) | NormalizerWrapper::NFKD(_)) {
                    within(decomposed_bytes(text.get()), most)?;
                }
                step.normalize(text)
            }
        };
        done.map_err(|error| TextError::of("normalizer", error))
    }
}

fn within(bytes: usize, most: usize) -> Result<(), TextError> {
    if bytes <= most {
        return Ok(());
    }
    Err(TextError::TooLarge(format!(
        "the normalizer makes {bytes} bytes of a text; the limit for this text is {most}"
    )))
}
