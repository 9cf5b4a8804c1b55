//! The part that adds special tokens, `post_processor`.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenizers::PostProcessorWrapper;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::processors::byte_level::ByteLevel;
use tokenizers::processors::roberta::RobertaProcessing;
use tokenizers::processors::sequence::Sequence;
use tokenizers::processors::template::TemplateProcessing;

use crate::error::{TextError, shown};
use crate::limits::TEMPLATE_PIECES_MAX;
use crate::steps::{Step, steps};

/// The types of steps that are known.
const KNOWN: [&str; 4] = ["BertProcessing", "ByteLevel", "RobertaProcessing", "TemplateProcessing"];

/// Maximum bytes of the part.
const PART_BYTES_MAX: usize = 64 << 10;

#[derive(Deserialize)]
struct TemplateFile {
    single: Vec<Piece>,
    pair: Vec<Piece>,
    special_tokens: HashMap<String, Special>,
}

#[derive(Deserialize)]
enum Piece {
    Sequence { id: String },
    SpecialToken { id: String },
}

#[derive(Deserialize)]
struct Special {
    ids: Vec<u32>,
}

/// Read the part.
pub(crate) fn read(part: Option<&RawValue>) -> Result<Option<PostProcessorWrapper>, TextError> {
    let bytes = part.map_or(0, |part| part.get().len());
    if bytes > PART_BYTES_MAX {
        let why = format!("post_processor has {bytes} bytes; the limit is {PART_BYTES_MAX}");
        return Err(TextError::TooLarge(why));
    }
    let read = steps("post_processor", part)?;
    let mut read = read.iter().map(read_step).collect::<Result<Vec<_>, _>>()?;
    Ok(match read.len() {
        0 | 1 => read.pop(),
        _ => Some(Sequence::new(read).into()),
    })
}

fn read_step(step: &Step<'_>) -> Result<PostProcessorWrapper, TextError> {
    step.check_kind(&KNOWN)?;
    match step.kind.as_str() {
        "BertProcessing" => step.parsed::<BertProcessing>().map(Into::into),
        "RobertaProcessing" => step.parsed::<RobertaProcessing>().map(Into::into),
        "ByteLevel" => step.parsed::<ByteLevel>().map(Into::into),
        _ => {
            let TemplateFile { single, pair, special_tokens } = step.parsed()?;
            let place = &step.place;
            check(&format!("{place}.single"), &single, &special_tokens, &["A"])?;
            check(&format!("{place}.pair"), &pair, &special_tokens, &["A", "B"])?;
            step.parsed::<TemplateProcessing>().map(Into::into)
        }
    }
}

/// Check a template, in which each of `sequences` may stand once. The library takes any, and fails
/// on a text.
fn check(
    place: &str,
    template: &[Piece],
    special: &HashMap<String, Special>,
    sequences: &[&str],
) -> Result<(), TextError> {
    let mut seen = Vec::new();
    let mut tokens = 0;
    for (at, piece) in template.iter().enumerate() {
        let fault = |why: String| Err(TextError::Malformed(format!("{place}[{at}]: {why}")));
        match piece {
            Piece::Sequence { id } if !sequences.contains(&id.as_str()) => {
                let id = shown(id);
                return fault(format!("the sequence {id:?} must be one of {sequences:?}"));
            }
            Piece::Sequence { id } if seen.contains(&id.as_str()) => {
                return fault(format!("the sequence {id:?} stands here a second time"));
            }
            Piece::Sequence { id } => seen.push(id.as_str()),
            Piece::SpecialToken { id } => match special.get(id) {
                Some(special) => tokens += special.ids.len(),
                None => return fault(format!("special_tokens has no {:?}", shown(id))),
            },
        }
    }
    let most = template.len().max(tokens);
    if most > TEMPLATE_PIECES_MAX {
        let why = format!("{place} has {most} tokens; the limit is {TEMPLATE_PIECES_MAX}");
        return Err(TextError::TooLarge(why));
    }
    Ok(())
}
