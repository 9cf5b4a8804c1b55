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

use anyhow::{Result, bail};
use clap::{ArgMatches, Command};

use crate::args::group;

pub(crate) fn command() -> Command {
    group("plugin")
        .about(
            "Make, build, check, test, try, push, publish, list and read back plugins, and show their \
             lines",
        )
        .subcommand(new::command())
        .subcommand(build::command())
        .subcommand(check::command())
        .subcommand(test::command())
        .subcommand(dev::command())
        .subcommand(push::command())
        .subcommand(publish::command())
        .subcommand(list::command())
        .subcommand(content::command())
        .subcommand(logs::command())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("new", matches)) => new::run(matches),
        Some(("build", matches)) => build::run(matches),
        Some(("check", matches)) => check::run(matches),
        Some(("push", matches)) => push::run(matches),
        Some(("publish", matches)) => publish::run(matches),
        Some(("list", matches)) => list::run(matches),
        Some(("content", matches)) => content::run(matches),
        Some(("logs", matches)) => logs::run(matches),
        Some(("test", matches)) => test::run(matches),
        Some(("dev", matches)) => dev::run(matches),
        _ => bail!("no such command; see gristmill --help"),
    }
}
