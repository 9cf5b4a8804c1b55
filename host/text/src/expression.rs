//! The expressions of a file: regular ones, with look-around, or literal texts.
//!
//! The library's own ends a search that goes back too often as if nothing more were found, which
//! gives wrong ids. Here it is an error.

use std::ops::Range;

use fancy_regex::{Regex, RegexBuilder};
use serde::Deserialize;
use tokenizers::Offsets;
use tokenizers::tokenizer::pattern::Pattern;

use crate::error::{TextError, shown};
use crate::limits::{BACKTRACKS_MAX, EXPRESSION_BYTES_MAX, EXPRESSION_SIZE_MAX};
use crate::work::Pace;

/// An expression as a file has it.
#[derive(Deserialize)]
pub(crate) enum Written {
    String(String),
    Regex(String),
}

/// A compiled expression.
pub(crate) enum Expression {
    Literal(String),
    Regex(Regex),
}

impl Written {
    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::String(text) | Self::Regex(text) => text.len(),
        }
    }

    /// The compiled form. `part` names where it stands.
    pub(crate) fn compile(self, part: &str) -> Result<Expression, TextError> {
        if self.len() > EXPRESSION_BYTES_MAX {
            return Err(TextError::TooLarge(format!(
                "{part}.pattern has {} bytes; the limit is {EXPRESSION_BYTES_MAX}",
                self.len()
            )));
        }
        match self {
            Self::String(text) if text.is_empty() => {
                Err(TextError::Malformed(format!("{part}.pattern is an empty text")))
            }
            Self::String(text) => Ok(Expression::Literal(text)),
            Self::Regex(pattern) => {
                let mut builder = RegexBuilder::new(&pattern);
                builder.backtrack_limit(BACKTRACKS_MAX);
                builder.delegate_size_limit(EXPRESSION_SIZE_MAX);
                builder.delegate_dfa_size_limit(EXPRESSION_SIZE_MAX);
                builder.build().map(Expression::Regex).map_err(|error| {
                    TextError::Malformed(format!(
                        "{part}.pattern {:?}: {}",
                        shown(&pattern),
                        shown(&error.to_string())
                    ))
                })
            }
        }
    }
}

impl Expression {
    /// Where it is found in `text`.
    pub(crate) fn find(&self, text: &str, pace: &Pace<'_>) -> Result<Vec<Range<usize>>, TextError> {
        let mut found = Vec::new();
        match self {
            Self::Literal(literal) => {
                for (start, literal) in text.match_indices(literal.as_str()) {
                    pace.ask()?;
                    found.push(start..start + literal.len());
                }
            }
            Self::Regex(regex) => {
                for matched in regex.find_iter(text) {
                    pace.ask()?;
                    let matched = matched.map_err(|error| self.failed(&error))?;
                    found.push(matched.range());
                }
            }
        }
        Ok(found)
    }

    fn failed(&self, error: &fancy_regex::Error) -> TextError {
        let pattern = match self {
            Self::Literal(text) => text,
            Self::Regex(regex) => regex.as_str(),
        };
        let why = shown(&error.to_string());
        TextError::TooLarge(format!(
            "the pattern {:?} takes too long on this text: {why}",
            shown(pattern)
        ))
    }
}

/// Ranges that were found in a text, as the library asks for them: with those between them.
pub(crate) struct Found<'a> {
    pub(crate) ranges: &'a [Range<usize>],
    /// Those between are the matches.
    pub(crate) invert: bool,
}

impl Pattern for Found<'_> {
    fn find_matches(&self, inside: &str) -> tokenizers::Result<Vec<(Offsets, bool)>> {
        if inside.is_empty() {
            return Ok(vec![((0, 0), self.invert)]);
        }
        let mut all = Vec::with_capacity(2 * self.ranges.len() + 1);
        let mut end = 0;
        for range in self.ranges {
            if end != range.start {
                all.push(((end, range.start), self.invert));
            }
            all.push(((range.start, range.end), !self.invert));
            end = range.end;
        }
        if end != inside.len() {
            all.push(((end, inside.len()), self.invert));
        }
        Ok(all)
    }
}
