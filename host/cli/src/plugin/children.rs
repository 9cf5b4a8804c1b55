//! Reading and compiling components in child processes, as a server does: a component that ends the
//! process that reads it ends none of the command line.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use gristmill_client::block_on;
use gristmill_platform::child::{ChildLimits, ChildRunner};
use gristmill_sandbox::{CheckedComponent, Compiler, check_in_child, child_limits};

use crate::child::runner_config;

/// The CPU time that a plugin may take. It is ten times that of a server without
/// configuration: who waits for it is its author.
const CPU_MAX: Duration = Duration::from_secs(600);

/// As the default of the server's setting `compile_memory_bytes`.
const MEMORY_BYTES_MAX: u64 = 2 << 30;

/// Compiles plugins.
pub(super) fn compiler() -> Compiler {
    Compiler::Child { runner: ChildRunner::new(runner_config()), limits: limits() }
}

/// Check a component or a core module. `what` names it in errors.
pub(super) fn check(file: Vec<u8>, what: &Path) -> Result<CheckedComponent> {
    let runner = ChildRunner::new(runner_config());
    let checking =
        async { anyhow::Ok(check_in_child(&runner, limits(), Bytes::from(file)).await?) };
    block_on(checking).with_context(|| format!("{} is not a plugin", what.display()))
}

fn limits() -> ChildLimits {
    child_limits(CPU_MAX, MEMORY_BYTES_MAX)
}
