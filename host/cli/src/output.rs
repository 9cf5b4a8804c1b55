//! The form of a command's result: text for people, or JSON for programs.

use std::fmt::Display;
use std::path::Path;

use clap::{Arg, ArgMatches};
use serde_json::Value;

use crate::args::{option, text};

/// The characters of a digest that a table shows.
const DIGEST: usize = "sha256:".len() + 12;

/// A column of a table: its heading, and the member of an item that it shows.
pub(crate) type Column = (&'static str, &'static str);

/// The form of the result, on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Text for people.
    Text,
    /// One JSON document.
    Json,
}

impl Output {
    /// The value of `--output`.
    pub fn of(matches: &ArgMatches) -> Self {
        match text(matches, "output") {
            Some("json") => Self::Json,
            _ => Self::Text,
        }
    }

    /// Print a result on standard output.
    pub(crate) fn print(self, document: impl Display, text: impl FnOnce() -> String) {
        match self {
            Self::Json => println!("{document}"),
            Self::Text => print!("{}", text()),
        }
    }
}

/// The text without what a terminal would act upon: control characters are escaped, but for line
/// ends and tabs. Plugins and servers chose parts of what a command prints.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\t' => escaped.push(char),
            char if char.is_control() => escaped.extend(char.escape_default()),
            char => escaped.push(char),
        }
    }
    escaped
}

/// Print a document on standard output.
pub(crate) fn print_document(document: &Value, output: Output) {
    output.print(document, || escaped(&format!("{document:#}\n")));
}

/// A list of things, as it is shown.
pub(crate) struct Table<'a> {
    pub(crate) columns: &'a [Column],
    /// What is said if it is empty.
    pub(crate) none: &'a str,
}

impl Table<'_> {
    /// Print the list on standard output. `row` makes the row of an item, whose members the columns
    /// show.
    pub(crate) fn print(&self, items: &[Value], output: Output, row: impl Fn(&Value) -> Value) {
        match output {
            Output::Json => println!("{}", Value::from(items)),
            Output::Text if items.is_empty() => eprintln!("{}", self.none),
            Output::Text => {
                print!("{}", table(self.columns, &items.iter().map(row).collect::<Vec<_>>()));
            }
        }
    }
}

/// The state of a thing in the status, with the reason if it does not serve.
pub(crate) fn state_and_reason(thing: &Value) -> String {
    let state = thing["state"].as_str().unwrap_or_default();
    match thing["reason"].as_str() {
        Some(reason) => format!("{state}: {reason}"),
        None => state.to_owned(),
    }
}

/// The beginning of a digest, enough to recognise it.
pub(crate) fn short_digest(digest: &str) -> String {
    digest.chars().take(DIGEST).collect()
}

/// The text, cut to so many characters.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    match text.chars().count() > chars_max {
        true => text.chars().take(chars_max - 3).chain("...".chars()).collect(),
        false => text.to_owned(),
    }
}

/// One line for each item, in columns, below a line of headings. Digests are cut.
pub(crate) fn table(columns: &[Column], items: &[Value]) -> String {
    let cell = |item: &Value, member: &str| match &item[member] {
        Value::Null => String::new(),
        Value::String(text) if member == "digest" => short_digest(text),
        Value::String(text) => escaped(text),
        other => other.to_string(),
    };
    let row = |item| columns.iter().map(|(_, member)| cell(item, member)).collect::<Vec<_>>();
    let head = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(items.iter().map(row)).collect();
    let length = |cell: &String| cell.chars().count();
    let width = |column: usize| rows.iter().map(|row| length(&row[column])).max();
    let widths: Vec<_> = (0..columns.len()).filter_map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// The flag `--output`.
pub fn argument() -> Arg {
    option("output", "FORM")
        .value_parser(["text", "json"])
        .default_value("text")
        .help("The form of the result")
}

/// The path as a shell reads it.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "/._-+".contains(char);
    if text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A size in KiB.
pub(crate) fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes.div_ceil(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_shells() {
        assert_eq!(quoted(Path::new("/usr/share/seven.png")), "/usr/share/seven.png");
        assert_eq!(quoted(Path::new("/it's $HOME")), r"'/it'\''s $HOME'");
    }
}
