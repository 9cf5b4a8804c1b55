//! `gristmill model`: the models of a server.

mod import;
mod list;
mod push;

use anyhow::{Result, bail};
use clap::{ArgMatches, Command};

pub(crate) use self::push::signature;

pub(crate) fn command() -> Command {
    Command::new("model")
        .about("Push, import and list models")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(push::command())
        .subcommand(import::command())
        .subcommand(list::command())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("push", matches)) => push::run(matches),
        Some(("import", matches)) => import::run(matches),
        Some(("list", matches)) => list::run(matches),
        _ => bail!("no such command; see gristmill model --help"),
    }
}
