//! The steps of a file's parts, as they stand there. A part is one step, or a sequence of steps,
//! which may have sequences within it.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{TextError, shown};
use crate::limits::STEPS_MAX;

/// Maximum sequences within one another.
const DEPTH_MAX: usize = 8;

/// A step as a file has it.
pub(crate) struct Step<'a> {
    /// Where it stands, for messages: `normalizer` or `normalizer[2]`.
    pub(crate) place: String,
    /// Its `type`.
    pub(crate) kind: String,
    raw: &'a RawValue,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Sequence<'a> {
    #[serde(
        borrow,
        rename = "normalizers",
        alias = "pretokenizers",
        alias = "processors",
        alias = "decoders"
    )]
    steps: Vec<&'a RawValue>,
}

impl<'a> Step<'a> {
    /// The step as the library or this crate has it.
    pub(crate) fn parsed<T: Deserialize<'a>>(&self) -> Result<T, TextError> {
        serde_json::from_str(self.raw.get())
            .map_err(|error| TextError::of_json(&format!("{} ({})", self.place, self.kind), &error))
    }

    /// An error if its type is none of `known`.
    pub(crate) fn check_kind(&self, known_kinds: &[&str]) -> Result<(), TextError> {
        if known_kinds.contains(&self.kind.as_str()) {
            return Ok(());
        }
        Err(TextError::Malformed(format!(
            "{}.type is {:?}: must be one of {}",
            self.place,
            shown(&self.kind),
            known_kinds.join(", ")
        )))
    }
}

/// The steps of the part `place`, if the file has it, with those of sequences in their places.
pub(crate) fn steps<'a>(
    place: &str,
    part: Option<&'a RawValue>,
) -> Result<Vec<Step<'a>>, TextError> {
    let mut all = Vec::new();
    if let Some(part) = part {
        add(&mut all, place.to_owned(), part, 0)?;
    }
    Ok(all)
}

fn add<'a>(
    all: &mut Vec<Step<'a>>,
    place: String,
    raw: &'a RawValue,
    depth: usize,
) -> Result<(), TextError> {
    let of_json = |error: serde_json::Error| TextError::of_json(&place, &error);
    let Kind { kind } = serde_json::from_str(raw.get()).map_err(of_json)?;
    if kind == "Sequence" {
        if depth == DEPTH_MAX {
            let why = format!("{place}: more than {DEPTH_MAX} sequences stand within one another");
            return Err(TextError::TooLarge(why));
        }
        let Sequence { steps } = serde_json::from_str(raw.get()).map_err(of_json)?;
        for (at, step) in steps.into_iter().enumerate() {
            add(all, format!("{place}[{at}]"), step, depth + 1)?;
        }
        return Ok(());
    }
    if all.len() == STEPS_MAX {
        return Err(TextError::TooLarge(format!("{place}: the limit is {STEPS_MAX} steps")));
    }
    all.push(Step { place, kind, raw });
    Ok(())
}
