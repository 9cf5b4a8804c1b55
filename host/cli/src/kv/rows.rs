//! The rows of a file with values: CSV, or JSON in each line. It reads line by line; an error names
//! the line.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gristmill_sandbox::{STORE_KEY_BYTES_MAX, STORE_VALUE_BYTES_MAX};
use gristmill_tables::{Cell, CellError, Cells};
use serde_json::{Map, Value};

/// Maximum bytes of a line: a value of 1 MiB as text, with room.
const LINE_BYTES_MAX: usize = 16 << 20;

/// A key with its value.
#[derive(Debug, PartialEq)]
pub(super) struct Row {
    /// From 1 on.
    pub(super) line: usize,
    pub(super) key: String,
    pub(super) value: Vec<u8>,
}

/// The rows of a file.
pub(super) struct Rows<R> {
    reader: BufReader<R>,
    format: Format,
    line: usize,
    read_bytes: u64,
    /// What the first line was taken for, if nothing says what it is.
    guessed: Option<Heading>,
}

enum Format {
    Csv {
        heading: Heading,
        /// The numbers of each row, once one was read.
        width: Option<usize>,
    },
    Ndjson,
}

/// Whether the first line of a CSV file is a heading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Heading {
    There,
    NotThere,
    /// It is one if it has no number.
    Unknown,
}

impl Rows<File> {
    /// The rows of the file at this path, whose ending says what it is.
    pub(super) fn of(path: &Path, file: File, heading: Heading) -> Result<Self> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => Ok(Self::new(file, Format::Csv { heading, width: None })),
            Some("ndjson" | "jsonl") if heading != Heading::Unknown => {
                bail!("--heading and --no-heading are for files that end with .csv")
            }
            Some("ndjson" | "jsonl") => Ok(Self::new(file, Format::Ndjson)),
            _ => bail!("its name must end with .csv or .ndjson"),
        }
    }
}

impl<R: Read> Rows<R> {
    fn new(file: R, format: Format) -> Self {
        Self { reader: BufReader::new(file), format, line: 0, read_bytes: 0, guessed: None }
    }

    /// The bytes of the rows so far.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// What the first line was taken for, if no flag says what it is.
    pub(super) fn note(&self) -> Option<&'static str> {
        Some(match self.guessed? {
            Heading::There => {
                "note: line 1 has no number after the key, so it was taken as a heading and not \
                 loaded; --no-heading makes it a row"
            }
            _ => "note: line 1 was loaded as a row; if it is a heading, give --heading",
        })
    }

    /// The next row. Empty lines are left out.
    pub(super) fn next_row(&mut self) -> Result<Option<Row>> {
        loop {
            let mut line = Vec::new();
            let limit = LINE_BYTES_MAX as u64 + 1;
            let read = self.reader.by_ref().take(limit).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            self.read_bytes += read as u64;
            let number = self.line;
            let row = self.row(&line).with_context(|| format!("line {number}"))?;
            if let Some((key, value)) = row {
                check(&key, &value).with_context(|| format!("line {number}"))?;
                return Ok(Some(Row { line: number, key, value }));
            }
        }
    }

    /// The key and the value of a line. None if it is empty or a heading.
    fn row(&mut self, line: &[u8]) -> Result<Option<(String, Vec<u8>)>> {
        ensure!(line.len() <= LINE_BYTES_MAX, "it is longer than {LINE_BYTES_MAX} bytes");
        let text = str::from_utf8(line).context("it is not UTF-8")?.trim_end_matches(['\r', '\n']);
        // Some programs write a mark before the first line.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim().is_empty() {
            return Ok(None);
        }
        match &mut self.format {
            Format::Csv { heading, width } => {
                if self.line == 1 {
                    if *heading == Heading::Unknown {
                        self.guessed = Some(heading_of(text));
                    }
                    if self.guessed.unwrap_or(*heading) == Heading::There {
                        return Ok(None);
                    }
                }
                csv_row(text, width).map(Some)
            }
            Format::Ndjson => json_row(text).map(Some),
        }
    }
}

/// What the first line of a CSV file is taken for.
fn heading_of(text: &str) -> Heading {
    let is_number = |cell: Result<Cell<'_>, CellError>| {
        cell.is_ok_and(|cell| cell.text().trim().parse::<f32>().is_ok())
    };
    let mut numbers = Cells::of(text).skip(1).peekable();
    match numbers.peek().is_none() || numbers.any(is_number) {
        true => Heading::NotThere,
        false => Heading::There,
    }
}

fn csv_row(text: &str, width: &mut Option<usize>) -> Result<(String, Vec<u8>)> {
    let cells = Cells::of(text).map(|cell| cell.map(Cell::text));
    let cells = cells.collect::<Result<Vec<_>, _>>()?;
    let Some((key, numbers @ [_, ..])) = cells.split_first() else {
        bail!("it has no comma after the key")
    };
    let wanted = *width.get_or_insert(numbers.len());
    let count = numbers.len();
    ensure!(count == wanted, "it has {count} numbers, but those before have {wanted}");
    Ok((key.to_string(), float_bytes(numbers.iter().map(|number| number.trim()))?))
}

fn json_row(text: &str) -> Result<(String, Vec<u8>)> {
    let mut row: Map<String, Value> = serde_json::from_str(text).context("it is no JSON object")?;
    let Some(Value::String(key)) = row.remove("key") else { bail!("key is missing or no text") };
    let value = match (row.remove("value"), row.remove("base64")) {
        (Some(Value::String(text)), None) => text.into_bytes(),
        (Some(Value::Number(number)), None) => number.to_string().into_bytes(),
        (Some(Value::Array(numbers)), None) => {
            let number = |value: &Value| {
                let number = value.as_f64();
                let number = number.context("value is a list with something that is no number")?;
                finite(number as f32, value)
            };
            numbers.iter().map(number).collect::<Result<Vec<_>>>()?.concat()
        }
        (None, Some(Value::String(base64))) => {
            STANDARD.decode(base64).ok().context("base64 is not base64 with its padding")?
        }
        _ => bail!("it must have value (text, a number, or a list of numbers) or base64 (text)"),
    };
    if let Some(other) = row.keys().next() {
        bail!("unknown key {other:?}; known are key, value, base64");
    }
    Ok((key, value))
}

/// The bytes of float32 numbers, as `gather` reads them.
pub(super) fn float_bytes<'a>(numbers: impl IntoIterator<Item = &'a str>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for text in numbers {
        let number: f32 = text.trim().parse().with_context(|| format!("{text:?} is no number"))?;
        bytes.extend(finite(number, text)?);
    }
    Ok(bytes)
}

/// The bytes of a number that was read from `text`.
fn finite(number: f32, text: impl Display) -> Result<[u8; 4]> {
    ensure!(number.is_finite(), "{text} is not a finite number of float32");
    Ok(number.to_le_bytes())
}

fn check(key: &str, value: &[u8]) -> Result<()> {
    ensure!(!key.is_empty(), "the key is empty");
    let (length, limit) = (key.len(), STORE_KEY_BYTES_MAX);
    ensure!(length <= limit, "the key has {length} bytes: the limit is {limit}");
    // In a document of 1 MiB it is base64.
    let (length, limit) = (value.len(), STORE_VALUE_BYTES_MAX / 2);
    ensure!(length <= limit, "the value has {length} bytes: the limit of this command is {limit}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(format: Format, text: &str) -> Result<Vec<(usize, String, Vec<u8>)>> {
        let mut rows = Rows::new(text.as_bytes(), format);
        let mut all = Vec::new();
        while let Some(Row { line, key, value }) = rows.next_row()? {
            all.push((line, key, value));
        }
        assert_eq!(rows.read_bytes(), text.len() as u64);
        Ok(all)
    }

    fn csv(text: &str) -> Result<Vec<(usize, String, Vec<u8>)>> {
        rows(Format::Csv { heading: Heading::Unknown, width: None }, text)
    }

    fn floats(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn a_line_of_csv_is_a_key_and_its_numbers() {
        let read = csv("\u{feff}item,f1,f2\r\na, 1 ,-2.5\r\n\r\nb,0,1e3").unwrap();
        assert_eq!(read[0], (2, "a".to_owned(), floats(&[1.0, -2.5])));
        assert_eq!(read[1], (4, "b".to_owned(), floats(&[0.0, 1000.0])));
        for (text, wrong) in [
            ("a,1\nb", "line 2: it has no comma"),
            ("a,1\nb,1,2", "line 2: it has 2 numbers, but those before have 1"),
            ("a,1\nb,x", "line 2: \"x\" is no number"),
            ("a,1\n,2", "line 2: the key is empty"),
            ("a,1e300", "line 1: 1e300 is not a finite number of float32"),
            ("a,1\nb,nan", "line 2: nan is not a finite number of float32"),
            ("a,1\n\"b,1", "line 2: a cell begins with a quotation mark, and no other one ends it"),
            ("a,1\n\"b\"c,1", "line 2: a cell goes on behind its second quotation mark"),
            ("a,1\nb\"c,1", "line 2: a quotation mark stands within a cell"),
        ] {
            let error = format!("{:#}", csv(text).unwrap_err());
            assert!(error.starts_with(wrong), "{text:?}: {error}");
        }
    }

    #[test]
    fn cells_may_be_quoted() {
        let read = csv("\"item\",\"f1\"\r\n\"a, \"\"b\"\"\",\"1\"\r\n\"c\", 2").unwrap();
        assert_eq!(read[0], (2, "a, \"b\"".to_owned(), floats(&[1.0])));
        assert_eq!(read[1], (3, "c".to_owned(), floats(&[2.0])));
        let read = csv("\"a\",\"1\"\n").unwrap();
        assert_eq!(read[0], (1, "a".to_owned(), floats(&[1.0])));
    }

    #[test]
    fn the_first_line_is_a_heading_or_a_row() {
        let first = |text: &str, heading| {
            let mut rows = Rows::new(text.as_bytes(), Format::Csv { heading, width: None });
            let line = rows.next_row().map(|row| row.unwrap().line);
            (line.map_err(|error| format!("{error:#}")), rows.note().is_some())
        };
        assert_eq!(first("a,1o\nb,2", Heading::Unknown), (Ok(2), true));
        assert_eq!(first("item,2024\nb,2", Heading::Unknown), (Ok(1), true));
        assert_eq!(first("item,2024\nb,2", Heading::There), (Ok(2), false));
        let wrong = "line 1: \"1o\" is no number: invalid float literal".to_owned();
        assert_eq!(first("a,1o\nb,2", Heading::NotThere), (Err(wrong), false));
    }

    #[test]
    fn a_line_of_json_is_an_object() {
        let read = rows(
            Format::Ndjson,
            "{\"key\":\"a\",\"value\":[1,-2.5]}\n{\"key\":\"b\",\"value\":\"x\"}\n\
             {\"key\":\"c\",\"value\":7}\n{\"key\":\"d\",\"base64\":\"AAE=\"}\n",
        );
        let values: Vec<_> = read.unwrap().into_iter().map(|(.., value)| value).collect();
        assert_eq!(values, [floats(&[1.0, -2.5]), b"x".to_vec(), b"7".to_vec(), vec![0, 1]]);
        for (text, wrong) in [
            ("[]", "line 1: it is no JSON object"),
            ("{\"value\":1}", "line 1: key is missing"),
            ("{\"key\":\"a\"}", "line 1: it must have value"),
            ("{\"key\":\"a\",\"value\":[\"x\"]}", "line 1: value is a list with"),
            ("{\"key\":\"a\",\"value\":[1e300]}", "line 1: 1e"),
            ("{\"key\":\"a\",\"value\":1,\"ttl\":1}", "line 1: unknown key \"ttl\""),
            ("{\"key\":\"a\",\"base64\":\"?\"}", "line 1: base64 is not"),
        ] {
            let error = format!("{:#}", rows(Format::Ndjson, text).unwrap_err());
            assert!(error.starts_with(wrong), "{text:?}: {error}");
        }
    }
}
