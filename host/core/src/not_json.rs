//! Why a text is not JSON, where the error of a JSON reader does not say what to do about it.
//!
//! Looks at bytes around the place where a reader stopped. Refuses to read JSON itself.

use std::fmt;

/// The bytes of a token that are looked at, to both sides of an error's place.
const TOKEN_SIDE_BYTES: usize = 400;

/// A reason why a text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotJson<'a> {
    /// The text begins with a byte order mark.
    ByteOrderMark,
    /// The text is UTF-16.
    Utf16,
    /// The text has a value that floats have and JSON has not.
    Float {
        /// The value, as it was sent.
        token: &'a str,
        /// The line where the reader stopped, from 1.
        line: usize,
        /// The byte in this line where the reader stopped, from 1.
        column: usize,
    },
}

impl<'a> NotJson<'a> {
    /// The reason why a reader stopped in `text` at this line and column, as serde_json counts
    /// them. None if the reader's own error says it better.
    pub fn of(text: &'a [u8], line: usize, column: usize) -> Option<Self> {
        match text {
            [0xef, 0xbb, 0xbf, ..] => return Some(Self::ByteOrderMark),
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return Some(Self::Utf16),
            // A reader stops within such a value. At the end of the text, the text is cut short.
            _ if offset(text, line, column) == text.len() => return None,
            _ => {}
        }
        let token = json_token(text, line, column);
        let word = token.trim_start_matches(['+', '-']);
        let is_float =
            ["nan", "inf", "infinity"].iter().any(|value| word.eq_ignore_ascii_case(value));
        is_float.then_some(Self::Float { token, line, column })
    }
}

impl fmt::Display for NotJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByteOrderMark => {
                f.write_str("it begins with a byte order mark: send UTF-8 without one")
            }
            Self::Utf16 => f.write_str("it is UTF-16: send UTF-8"),
            Self::Float { token, line, column } => {
                write!(f, "{token} at line {line} column {column} is not JSON")
            }
        }
    }
}

/// The number or word in `text` at which a reader stopped, as it was sent. `line` and `column` are
/// as serde_json counts them.
pub fn json_token(text: &[u8], line: usize, column: usize) -> &str {
    let at = offset(text, line, column);
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

/// The end of the last byte that the reader looked at.
fn offset(text: &[u8], line: usize, column: usize) -> usize {
    let lines = text.split(|byte| *byte == b'\n').take(line.saturating_sub(1));
    let line: usize = lines.map(|line| line.len() + 1).sum();
    line.saturating_add(column).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &[u8], line: usize, column: usize) -> Option<String> {
        NotJson::of(text, line, column).map(|reason| reason.to_string())
    }

    #[test]
    fn a_float_that_json_has_not_is_named_with_its_place() {
        for (text, line, column, expected) in [
            ("[NaN]", 1, 2, Some("NaN at line 1 column 2 is not JSON")),
            ("[1,\n -Infinity]", 2, 3, Some("-Infinity at line 2 column 3 is not JSON")),
            ("[nan]", 1, 3, Some("nan at line 1 column 3 is not JSON")),
            ("[+inf]", 1, 2, Some("+inf at line 1 column 2 is not JSON")),
            ("[Nothing]", 1, 2, None),
            ("[1,]", 1, 4, None),
            // A text that is cut short.
            ("[\"NaN", 1, 5, None),
            ("", 1, 0, None),
            ("[NaN]", 9, 9, None),
        ] {
            assert_eq!(shown(text.as_bytes(), line, column).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn another_encoding_is_named() {
        let marked = "it begins with a byte order mark: send UTF-8 without one";
        assert_eq!(shown(b"\xef\xbb\xbf{}", 1, 1).as_deref(), Some(marked));
        for text in [b"\xff\xfe{\0", b"\xfe\xff\0{"] {
            assert_eq!(shown(text, 1, 1).as_deref(), Some("it is UTF-16: send UTF-8"));
        }
    }

    #[test]
    fn a_token_is_as_it_was_sent_and_bounded() {
        assert_eq!(json_token(b"[1.50, 2]", 1, 5), "1.50");
        assert_eq!(json_token(b"[ , 2]", 1, 3), "");
        let long = [b'1'; 2000];
        assert_eq!(json_token(&long, 1, 1000).len(), 2 * TOKEN_SIDE_BYTES);
    }
}
