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

/// The flag `--output`.
pub(crate) fn argument() -> Arg {
    Arg::new("output")
        .long("output")
        .value_name("FORM")
        .value_parser(["text", "json"])
        .default_value("text")
        .help("The form of the result")
}
