//! The form of a command's result: text for people, or JSON for programs.

use clap::{Arg, ArgMatches};

/// The form of the result, on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Text,
    /// One JSON document.
    Json,
}

impl Output {
    /// The value of `--output`.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        match matches.get_one::<String>("output").map(String::as_str) {
            Some("json") => Self::Json,
            _ => Self::Text,
        }
    }
}

/// The text without what a terminal would act upon: control characters are escaped, but for line
/// ends and tabs. Plugins and servers chose parts of what a command prints.
pub(crate) fn escaped(text: &str) -> String {
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

/// The flag `--output`.
pub(crate) fn argument() -> Arg {
    Arg::new("output")
        .long("output")
        .value_name("FORM")
        .value_parser(["text", "json"])
        .default_value("text")
        .help("The form of the result")
}
