//! `gristmill child`: a process for work that may take any time and any memory. Only the server
//! starts it, and it sends the work over standard input.

use anyhow::{Context, Result, anyhow, bail};
use clap::Command;
use gristmill_control::{PROVE_JOB, prove_model};
use gristmill_sandbox::{COMPILE_JOB, compile};

pub(crate) fn command() -> Command {
    Command::new("child").about("Do work for the server that started this process").hide(true)
}

pub(crate) fn run() -> Result<()> {
    let task = gristmill_child::enter().context("not started by a server")?;
    let mut out = std::io::stdout().lock();
    match task.job.as_str() {
        COMPILE_JOB => compile(&task, &mut out).map_err(|error| anyhow!(error.in_full())),
        PROVE_JOB => prove_model(&task, &mut out).map_err(|why| anyhow!(why)),
        other => bail!("no such job: {other:?}"),
    }
}
