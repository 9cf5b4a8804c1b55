//! What is wrong with a text that is not the JSON it should be.

use serde::Deserialize;

use crate::bounded::cut;
use crate::error::ParseError;
use crate::object::Object;

/// The bytes of a token that are looked at, to both sides of an error's place.
const TOKEN_SIDE_BYTES: usize = 400;

/// A document of the protocol beside inference requests. An empty body is an empty document.
///
/// # Errors
/// [`ParseError::Json`].
pub fn document<'a, T: Default + Deserialize<'a>>(body: &'a [u8]) -> Result<T, ParseError> {
    if body.is_empty() {
        return Ok(T::default());
    }
    let read = serde_json::from_slice::<Object<T>>(body);
    read.map(|Object(document)| document).map_err(|error| unreadable(body, &error))
}

/// The error of `body`, which the reader refused with `error`.
pub(crate) fn unreadable(body: &[u8], error: &serde_json::Error) -> ParseError {
    ParseError::Json(fault(body, error))
}

fn fault(body: &[u8], error: &serde_json::Error) -> String {
    match body {
        [0xef, 0xbb, 0xbf, ..] => {
            return "it begins with a byte order mark: send UTF-8 without one".into();
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return "it is UTF-16: send UTF-8".into(),
        _ => {}
    }
    let token = token(body, error);
    match is_no_number(token) {
        true => format!(
            "{token} at line {} column {} is not JSON: send a tensor with NaN or infinity as binary \
             data (binary_data_size, and the header Inference-Header-Content-Length)",
            error.line(),
            error.column(),
        ),
        false => cut(error),
    }
}

/// The number or word in `text` at which the reader stopped, as it was sent.
pub(crate) fn token<'a>(text: &'a [u8], error: &serde_json::Error) -> &'a str {
    let lines = text.split(|byte| *byte == b'\n').take(error.line().saturating_sub(1));
    let line: usize = lines.map(|line| line.len() + 1).sum();
    // The reader has just passed the last byte that it looked at.
    let at = (line + error.column()).min(text.len());
    let (before, after) = text.split_at(at);
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let begin = before.iter().rev().take(TOKEN_SIDE_BYTES).take_while(is_part).count();
    let end = match begin {
        0 => 0,
        _ => after.iter().take(TOKEN_SIDE_BYTES).take_while(is_part).count(),
    };
    // All of it is ASCII.
    std::str::from_utf8(&text[at - begin..at + end]).unwrap_or_default()
}

/// Whether the token is one of the values that floats have and JSON has not.
fn is_no_number(token: &str) -> bool {
    let word = token.trim_start_matches(['+', '-']);
    ["nan", "inf", "infinity"].iter().any(|value| word.eq_ignore_ascii_case(value))
}
