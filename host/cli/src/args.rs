//! The forms of arguments and commands, and the values of arguments.

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};

/// `--name VALUE`.
pub(crate) fn option(name: &'static str, value: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value)
}

/// `--name`.
pub(crate) fn switch(name: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue)
}

/// An argument by its place, which must be given.
pub(crate) fn word(name: &'static str, value: &'static str) -> Arg {
    Arg::new(name).value_name(value).required(true)
}

/// A command that has others.
pub(crate) fn group(name: &'static str) -> Command {
    Command::new(name).subcommand_required(true).arg_required_else_help(true)
}

/// The value of an argument, if there is one.
pub(crate) fn text<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}

/// The value of an argument that must be given.
pub(crate) fn required<'a>(matches: &'a ArgMatches, name: &str) -> Result<&'a str> {
    text(matches, name).with_context(|| format!("{name} is missing"))
}

/// The values of an argument that can be given several times.
pub(crate) fn texts<'a>(matches: &'a ArgMatches, name: &str) -> impl Iterator<Item = &'a String> {
    matches.get_many::<String>(name).into_iter().flatten()
}
