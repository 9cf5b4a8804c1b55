//! `gristmill child`: the process in which the server does what may take any time and any memory.
//! Started by the server alone, which tells it over standard input what to do.

use anyhow::{Context, Result, bail};
use clap::Command;

pub(crate) fn command() -> Command {
    Command::new("child").about("Work for the server that started this").hide(true)
}

pub(crate) fn run() -> Result<()> {
    let task = gristmill_child::enter().context("not started by a server")?;
    match task.job.as_str() {
        other => bail!("no such job: {other:?}"),
    }
}
