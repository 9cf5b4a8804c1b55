//! `gristmill child`: a process for work that may take any time and any memory. Only this program
//! starts it, and sends the work over standard input.

use anyhow::{Context, Result, anyhow, bail};
use clap::Command;
use gristmill_control::{PROVE_JOB, prove_model};
use gristmill_sandbox::{CHECK_JOB, COMPILE_JOB, check, compile};

pub(crate) fn command() -> Command {
    Command::new("child").about("Do work for the process that started this one").hide(true)
}

pub(crate) fn run() -> Result<()> {
    let task = gristmill_platform::child::enter().context("not started by a server")?;
    let mut out = std::io::stdout().lock();
    match task.job.as_str() {
        CHECK_JOB => Ok(check(&task, &mut out)?),
        COMPILE_JOB => compile(&task, &mut out).map_err(|error| anyhow!(error.in_full())),
        PROVE_JOB => prove_model(&task, &mut out).map_err(|why| anyhow!(why)),
        other => bail!("no such job: {other:?}"),
    }
}
