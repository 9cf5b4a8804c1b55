//! Splitting a normalized text into words.

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenizers::{PreTokenizedString, PreTokenizer, PreTokenizerWrapper, SplitDelimiterBehavior};

use crate::error::TextError;
use crate::expression::{Expression, Found, Written};
use crate::steps::{Step, steps};
use crate::work::Pace;

/// The types of steps that are known.
const KNOWN: [&str; 11] = [
    "BertPreTokenizer",
    "ByteLevel",
    "CharDelimiterSplit",
    "Digits",
    "FixedLength",
    "Metaspace",
    "Punctuation",
    "Split",
    "UnicodeScripts",
    "Whitespace",
    "WhitespaceSplit",
];

/// A step.
pub(crate) enum SplitStep {
    Split(Split),
    Library(PreTokenizerWrapper),
}

/// Splits where an expression is found, or everywhere else.
pub(crate) struct Split {
    pattern: Expression,
    behavior: SplitDelimiterBehavior,
    invert: bool,
}

#[derive(Deserialize)]
struct SplitFile {
    pattern: Written,
    behavior: SplitDelimiterBehavior,
    invert: bool,
}

/// The steps of the part `pre_tokenizer`. Adds the bytes of their expressions to `expressions`.
pub(crate) fn read(
    part: Option<&RawValue>,
    expressions: &mut usize,
) -> Result<Vec<SplitStep>, TextError> {
    let read = steps("pre_tokenizer", part)?;
    let read: Result<Vec<_>, _> = read.iter().map(|step| read_step(step, expressions)).collect();
    let read = read?;
    // Each makes two bytes of one.
    let is_byte_level =
        |step: &&SplitStep| matches!(step, SplitStep::Library(PreTokenizerWrapper::ByteLevel(_)));
    if read.iter().filter(is_byte_level).count() > 1 {
        return Err(TextError::Malformed("pre_tokenizer: there are two of type ByteLevel".into()));
    }
    Ok(read)
}

fn read_step(step: &Step<'_>, expressions: &mut usize) -> Result<SplitStep, TextError> {
    step.check_kind(&KNOWN)?;
    if step.kind != "Split" {
        return step.parsed().map(SplitStep::Library);
    }
    let SplitFile { pattern, behavior, invert } = step.parsed()?;
    *expressions += pattern.len();
    let pattern = pattern.compile(&step.place)?;
    Ok(SplitStep::Split(Split { pattern, behavior, invert }))
}

impl SplitStep {
    pub(crate) fn run(
        &self,
        texts: &mut PreTokenizedString,
        pace: &Pace<'_>,
    ) -> Result<(), TextError> {
        pace.ask()?;
        let done = match self {
            Self::Split(Split { pattern, behavior, invert }) => texts.split(|_, text| {
                let ranges = pattern.find(text.get(), pace)?;
                text.split(Found { ranges: &ranges, invert: *invert }, *behavior)
            }),
            Self::Library(step) => step.pre_tokenize(texts),
        };
        done.map_err(|error| TextError::of("pre_tokenizer", error))
    }
}
