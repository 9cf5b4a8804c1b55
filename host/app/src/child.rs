//! `gristmill child`: a process for work that may take any time and any memory. Only this program
//! starts it, and sends the work over standard input.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Command;
use gristmill_control::{PROVE_JOB, prove_model};
use gristmill_platform::child::{ChildLimits, RunnerConfig};
use gristmill_sandbox::{CHECK_JOB, COMPILE_JOB, check, compile};

/// The most machine code of one plugin, ten times that of an interpreter in WebAssembly.
const CODE_BYTES_MAX: u64 = 512 << 20;

/// The seconds of real time that a child has for each second of processor time. On a busy machine a
/// child gets a tenth of a core.
const WALL_PER_CPU: u32 = 10;

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

/// How children are started: by default one at a time.
pub(crate) fn runner_config() -> RunnerConfig {
    // The allocator reserves a gigabyte at its start. As writable memory this would exceed the
    // limit that a child sets later.
    let environment = vec![("MIMALLOC_ARENA_EAGER_COMMIT".into(), "0".into())];
    RunnerConfig { environment, ..RunnerConfig::new(&["child"]) }
}

/// The limits of a child that reads and compiles a plugin.
pub(crate) fn plugin_limits(cpu: Duration, memory_bytes: u64) -> ChildLimits {
    let (wall, output_bytes) = (cpu * WALL_PER_CPU, CODE_BYTES_MAX);
    ChildLimits { wall, cpu, memory_bytes, address_bytes: None, output_bytes }
}
