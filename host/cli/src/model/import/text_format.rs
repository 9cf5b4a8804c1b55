//! Protobuf's text format, as `config.pbtxt` has it: names and values with their lines.
//!
//! There is no schema, because a reader must be able to name the keys that it does not know. So a
//! field may have any value, and each value of a list stands as a field of its own, as in the
//! longer form of a repeated field.
//!
//! Invariant: the input is hostile. Each byte is looked at a bounded number of times, and messages
//! are nested at most [`LEVELS_MAX`] deep. The caller bounds the input.

use std::fmt;
use std::rc::Rc;

use crate::output::cut;

/// Maximum levels of messages in messages.
const LEVELS_MAX: usize = 64;

/// Maximum characters of a name or a value that an error repeats.
pub(super) const SHOWN_CHARS_MAX: usize = 60;

/// A message: its fields in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Message {
    pub(super) fields: Vec<Field>,
}

/// A field with one value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    /// Values of one list share it.
    pub(super) name: Rc<str>,
    /// The line of the name, or of the value in a list.
    pub(super) line: usize,
    pub(super) value: FieldValue,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum FieldValue {
    Message(Message),
    Text(String),
    /// A name of an enumeration, `true` or `false`.
    Word(String),
    Integer(i128),
    Float(f64),
}

/// The text is not in the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub(super) struct ParseError {
    pub(super) line: usize,
    pub(super) what: String,
}

impl fmt::Display for FieldValue {
    /// The value as an error repeats it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(_) => f.write_str("a message"),
            Self::Text(text) => write!(f, "{:?}", cut(text, SHOWN_CHARS_MAX)),
            Self::Word(word) => f.write_str(&cut(word, SHOWN_CHARS_MAX)),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
        }
    }
}

/// Read the message that a file is.
pub(super) fn parse(bytes: &[u8]) -> Result<Message, ParseError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    Cursor { bytes, at: 0, line: 1 }.message(None, 0)
}

/// A place in the text.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

/// A message that has begun: its line, and the sign that ends it.
#[derive(Clone, Copy)]
struct Opened {
    line: usize,
    end: u8,
}

impl Cursor<'_> {
    /// The fields up to the end of the message, or of the file.
    fn message(&mut self, opened: Option<Opened>, level: usize) -> Result<Message, ParseError> {
        let mut fields = Vec::new();
        loop {
            self.skip_blanks();
            match (self.peek(), opened) {
                (None, None) => return Ok(Message { fields }),
                (None, Some(Opened { end, line })) => {
                    let end = char::from(end);
                    let what = format!("the message that begins here has no {end:?} at its end");
                    return Err(ParseError { line, what });
                }
                (Some(byte), Some(opened)) if byte == opened.end => {
                    self.at += 1;
                    return Ok(Message { fields });
                }
                (Some(_), _) => self.field(&mut fields, level)?,
            }
        }
    }

    /// A message in another one. The cursor is at the sign that begins it.
    fn nested(&mut self, level: usize) -> Result<Message, ParseError> {
        if level == LEVELS_MAX {
            return Err(self.error(format!("more than {LEVELS_MAX} levels of messages")));
        }
        let end = if self.peek() == Some(b'<') { b'>' } else { b'}' };
        let opened = Opened { end, line: self.line };
        self.at += 1;
        self.message(Some(opened), level + 1)
    }

    fn field(&mut self, fields: &mut Vec<Field>, level: usize) -> Result<(), ParseError> {
        let line = self.line;
        let name: Rc<str> = self.name()?.into();
        self.skip_blanks();
        let has_colon = self.take(b':');
        self.skip_blanks();
        match self.peek() {
            Some(b'[') => self.list(&name, fields, level)?,
            Some(b'{' | b'<') => {
                let value = FieldValue::Message(self.nested(level)?);
                fields.push(Field { name, line, value });
            }
            _ if has_colon => {
                let value = self.scalar()?;
                fields.push(Field { name, line, value });
            }
            _ => {
                let name = cut(&name, SHOWN_CHARS_MAX);
                let what = format!("{name} has no value: a \":\" or a \"{{\" must follow");
                return Err(ParseError { line, what });
            }
        }
        self.skip_blanks();
        if !self.take(b',') {
            self.take(b';');
        }
        Ok(())
    }

    /// The name of a field, or of an extension in brackets.
    fn name(&mut self) -> Result<String, ParseError> {
        let start = self.at;
        if self.take(b'[') {
            while let Some(byte) = self.peek().filter(|byte| *byte != b'\n') {
                self.at += 1;
                if byte == b']' {
                    return Ok(self.text_from(start));
                }
            }
            return Err(self.error("the name after \"[\" has no \"]\" at its end".into()));
        }
        match self.peek() {
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => Ok(self.word()),
            _ => Err(self.unexpected("the name of a field")),
        }
    }

    /// A list. The cursor is at the sign that begins it.
    fn list(
        &mut self,
        name: &Rc<str>,
        fields: &mut Vec<Field>,
        level: usize,
    ) -> Result<(), ParseError> {
        let begin = self.line;
        self.at += 1;
        loop {
            self.skip_blanks();
            let line = self.line;
            let value = match self.peek() {
                None => {
                    let what = "the list that begins here has no \"]\" at its end".into();
                    return Err(ParseError { line: begin, what });
                }
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'[') => return Err(self.error("a list stands in a list".into())),
                Some(b'{' | b'<') => FieldValue::Message(self.nested(level)?),
                Some(_) => self.scalar()?,
            };
            fields.push(Field { name: name.clone(), line, value });
            self.skip_blanks();
            if !self.take(b',') && !matches!(self.peek(), None | Some(b']')) {
                return Err(self.unexpected("\",\" or \"]\""));
            }
        }
    }

    fn scalar(&mut self) -> Result<FieldValue, ParseError> {
        match self.peek() {
            Some(b'"' | b'\'') => self.text().map(FieldValue::Text),
            Some(b'0'..=b'9' | b'.') => self.number(),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => Ok(FieldValue::Word(self.word())),
            Some(b'-') => self.negative(),
            _ => Err(self.unexpected("a value")),
        }
    }

    /// A value that begins with `-`.
    fn negative(&mut self) -> Result<FieldValue, ParseError> {
        self.at += 1;
        self.skip_blanks();
        let number = match self.peek() {
            Some(b'0'..=b'9' | b'.') => self.number()?,
            _ => FieldValue::Word(self.word().to_ascii_lowercase()),
        };
        match number {
            FieldValue::Integer(number) => Ok(FieldValue::Integer(-number)),
            FieldValue::Float(number) => Ok(FieldValue::Float(-number)),
            FieldValue::Word(word) if word == "inf" => Ok(FieldValue::Float(f64::NEG_INFINITY)),
            _ => Err(self.error("a number must follow the \"-\"".into())),
        }
    }

    /// A number without a sign: decimal, hexadecimal after `0x`, octal after `0`, or with a point
    /// or an exponent.
    fn number(&mut self) -> Result<FieldValue, ParseError> {
        let start = self.at;
        while let Some(byte) = self.peek() {
            let is_after_exponent = matches!(self.bytes[start..self.at], [.., b'e' | b'E']);
            let is_sign = matches!(byte, b'+' | b'-') && is_after_exponent;
            if !is_sign && byte != b'.' && !byte.is_ascii_alphanumeric() {
                break;
            }
            self.at += 1;
        }
        let text = self.text_from(start);
        let is_whole = text.bytes().all(|byte| byte.is_ascii_digit());
        let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let whole = match hex {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None if is_whole && text.len() > 1 && text.starts_with('0') => {
                u64::from_str_radix(&text, 8).ok()
            }
            None => text.parse().ok(),
        };
        let value = match whole {
            Some(whole) => Some(FieldValue::Integer(whole.into())),
            None if is_whole || hex.is_some() => None,
            None => text.trim_end_matches(['f', 'F']).parse::<f64>().ok().map(FieldValue::Float),
        };
        value.ok_or_else(|| {
            let text = cut(&text, SHOWN_CHARS_MAX);
            self.error(format!("{text} is not a number, or it is larger than {}", u64::MAX))
        })
    }

    /// Texts that follow each other are one.
    fn text(&mut self) -> Result<String, ParseError> {
        let line = self.line;
        let mut bytes = Vec::new();
        while let Some(quote @ (b'"' | b'\'')) = self.peek() {
            self.at += 1;
            loop {
                match self.peek() {
                    None | Some(b'\n') => {
                        let quote = char::from(quote);
                        return Err(self.error(format!("the text has no {quote} at its end")));
                    }
                    Some(b'\\') => {
                        self.at += 1;
                        self.escape(&mut bytes)?;
                    }
                    Some(byte) => {
                        self.at += 1;
                        if byte == quote {
                            break;
                        }
                        bytes.push(byte);
                    }
                }
            }
            self.skip_blanks();
        }
        let wrong = |_| ParseError { line, what: "the text is not UTF-8".into() };
        String::from_utf8(bytes).map_err(wrong)
    }

    /// The byte or the character for what stands behind a `\`.
    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), ParseError> {
        let Some(byte) = self.peek().filter(|byte| *byte != b'\n') else {
            return Err(self.error("the text ends after a \"\\\"".into()));
        };
        self.at += 1;
        let code = match byte {
            b'a' => 0x07_u32,
            b'b' => 0x08,
            b't' => 0x09,
            b'n' => 0x0a,
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'r' => 0x0d,
            b'\\' | b'\'' | b'"' | b'?' => u32::from(byte),
            b'0'..=b'7' => {
                self.at -= 1;
                self.digits(8, 3).unwrap_or_default()
            }
            b'x' | b'X' => self.digits(16, 2).unwrap_or(u32::MAX),
            b'u' | b'U' => {
                let count = if byte == b'u' { 4 } else { 8 };
                let start = self.at;
                let code = self.digits(16, count).filter(|_| self.at - start == count);
                let char = code.and_then(char::from_u32);
                let wrong = || self.error("a \"\\u\" does not name a character".into());
                bytes.extend(char.ok_or_else(wrong)?.to_string().bytes());
                return Ok(());
            }
            _ => u32::MAX,
        };
        let Ok(code) = u8::try_from(code) else {
            let shown = char::from(byte);
            return Err(self.error(format!("\"\\\" before {shown:?} does not name a byte")));
        };
        bytes.push(code);
        Ok(())
    }

    /// The number of at most `count` digits. None if there are none.
    fn digits(&mut self, radix: u32, count: usize) -> Option<u32> {
        let mut number = None;
        for _ in 0..count {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(radix)) else {
                break;
            };
            // Eight hexadecimal digits fill the type.
            number = Some(number.unwrap_or(0_u32).wrapping_mul(radix) | digit);
            self.at += 1;
        }
        number
    }

    /// Letters, digits and `_`.
    fn word(&mut self) -> String {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.at += 1;
        }
        self.text_from(start)
    }

    fn skip_blanks(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => self.line += 1,
                b'#' => {
                    let rest = self.bytes[self.at..].iter();
                    self.at += rest.take_while(|byte| **byte != b'\n').count();
                    continue;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => {}
                _ => return,
            }
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Whether this byte stood here. If so, the cursor is behind it.
    fn take(&mut self, byte: u8) -> bool {
        let is_here = self.peek() == Some(byte);
        self.at += usize::from(is_here);
        is_here
    }

    fn text_from(&self, start: usize) -> String {
        String::from_utf8_lossy(&self.bytes[start..self.at]).into_owned()
    }

    fn unexpected(&self, wanted: &str) -> ParseError {
        let rest = &self.bytes[self.at..self.bytes.len().min(self.at + 4)];
        match String::from_utf8_lossy(rest).chars().next() {
            Some(char) => self.error(format!("{char:?} stands where {wanted} must stand")),
            None => self.error(format!("the file ends where {wanted} must stand")),
        }
    }

    fn error(&self, what: String) -> ParseError {
        ParseError { line: self.line, what }
    }
}

#[cfg(test)]
mod tests;
