//! Splitting a normalized text into words.

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenizers::pre_tokenizers::metaspace::PrependScheme;
use tokenizers::{
    OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer, PreTokenizerWrapper,
    SplitDelimiterBehavior,
};

use crate::error::TextError;
use crate::expression::{Expression, Expressions, Found, Written};
use crate::limits::{NORMALIZING_BYTES, TOKENIZING_BYTES};
use crate::steps::{Step, steps};
use crate::work::{Pace, Work};

/// The types of steps that are known.
const KNOWN: [&str; 9] = [
    "BertPreTokenizer",
    "ByteLevel",
    "CharDelimiterSplit",
    "Digits",
    "Metaspace",
    "Punctuation",
    "Split",
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

/// The steps of the part `pre_tokenizer`.
pub(crate) fn read(
    part: Option<&RawValue>,
    expressions: &mut Expressions<'_, '_>,
) -> Result<Vec<SplitStep>, TextError> {
    let read = steps("pre_tokenizer", part)?;
    // Each makes texts longer.
    for kind in ["ByteLevel", "Metaspace"] {
        if read.iter().filter(|step| step.kind == kind).count() > 1 {
            return Err(TextError::Malformed(format!(
                "pre_tokenizer: there are two of type {kind}"
            )));
        }
    }
    read.iter().map(|step| read_step(step, expressions)).collect()
}

fn read_step(
    step: &Step<'_>,
    expressions: &mut Expressions<'_, '_>,
) -> Result<SplitStep, TextError> {
    step.check_kind(&KNOWN)?;
    if step.kind != "Split" {
        return step.parsed().map(SplitStep::Library);
    }
    let SplitFile { pattern, behavior, invert } = step.parsed()?;
    let pattern = pattern.compile(&step.place, expressions)?;
    Ok(SplitStep::Split(Split { pattern, behavior, invert }))
}

impl SplitStep {
    pub(crate) fn run(
        &self,
        texts: &mut PreTokenizedString,
        pace: &Pace<'_>,
        work: &mut Work<'_>,
    ) -> Result<(), TextError> {
        pace.ask()?;
        (work.reserve)(self.growth(texts))?;
        let done = match self {
            Self::Split(Split { pattern, behavior, invert }) => texts.split(|_, text| {
                let ranges = pattern.find(text.get(), pace)?;
                text.split(Found { ranges: &ranges, invert: *invert }, *behavior)
            }),
            Self::Library(step) => step.pre_tokenize(texts),
        };
        done.map_err(|error| TextError::of("pre_tokenizer", error))
    }
    /// The memory of what it adds to these texts.
    fn growth(&self, texts: &PreTokenizedString) -> usize {
        let (grown, is_led): (fn(u8) -> usize, bool) = match self {
            Self::Library(PreTokenizerWrapper::ByteLevel(step)) => {
                (byte_level_growth, step.add_prefix_space)
            }
            Self::Library(PreTokenizerWrapper::Metaspace(step)) => {
                (metaspace_growth, step.prepend_scheme != PrependScheme::Never)
            }
            _ => return 0,
        };
        let mut memory = 0;
        for (text, _, tokens) in texts.get_splits(OffsetReferential::Normalized, OffsetType::None) {
            if tokens.is_none() {
                let bytes: usize = text.bytes().map(grown).sum();
                // Before a text comes one more character.
                memory += bytes * NORMALIZING_BYTES + usize::from(is_led) * TOKENIZING_BYTES;
            }
        }
        memory
    }
}

/// The bytes by which `ByteLevel` makes a byte longer.
fn byte_level_growth(byte: u8) -> usize {
    usize::from(!byte.is_ascii_graphic())
}

/// The bytes by which `Metaspace` makes a byte longer: a character has at most four.
fn metaspace_growth(byte: u8) -> usize {
    if byte == b' ' { 3 } else { 0 }
}
