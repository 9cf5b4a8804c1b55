//! `gristmill model`: the models of a server.

mod import;
mod list;
mod push;

use anyhow::{Result, bail};
use clap::{ArgMatches, Command};

use crate::args::group;

pub(crate) use self::push::signature;

pub(crate) fn command() -> Command {
    group("model")
        .about("Push, import and list models")
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
