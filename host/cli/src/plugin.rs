//! `gristmill plugin`: from an empty folder to a running pipeline.

pub(crate) mod build;
mod build_folder;
mod check;
mod children;
mod component_file;
mod content;
mod dev;
mod language;
pub(crate) mod library;
mod list;
mod loading;
mod logs;
mod model;
mod named_models;
mod new;
mod publish;
mod push;
mod report;
mod sdk;
mod settings;
mod test;
mod tool;
mod watch;
pub(crate) mod within;

use anyhow::{Context, Result};
use clap::{ArgMatches, Command};

use crate::args::group;

/// A command, and what runs it.
type Entry = (fn() -> Command, fn(&ArgMatches) -> Result<()>);

const COMMANDS: [Entry; 10] = [
    (new::command, new::run),
    (build::command, build::run),
    (check::command, check::run),
    (test::command, test::run),
    (dev::command, dev::run),
    (push::command, push::run),
    (publish::command, publish::run),
    (list::command, list::run),
    (content::command, content::run),
    (logs::command, logs::run),
];

pub(crate) fn command() -> Command {
    group("plugin")
        .about(
            "Make, build, check, test, try, push, publish, list and read back plugins, and show their \
             lines",
        )
        .subcommands(COMMANDS.map(|(command, _)| command()))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    const UNKNOWN: &str = "no such command; see gristmill plugin --help";
    let (name, matches) = matches.subcommand().context(UNKNOWN)?;
    let is_it = |(command, _): &Entry| command().get_name() == name;
    let (_, run) = COMMANDS.into_iter().find(is_it).context(UNKNOWN)?;
    run(matches)
}
