//! The limits of one child.

use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// Descriptors that a child may have open.
const FILES: u64 = 256;

/// The limits of one child. Going over one ends the child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildLimits {
    /// From its start to its end. Kept by the parent.
    pub wall: Duration,
    /// CPU time of all its threads, in whole seconds.
    pub cpu: Duration,
    /// Memory that it can write to: heap, stacks, and private mappings.
    pub memory_bytes: u64,
    /// Address space, if it is bounded. CUDA, for example, reserves far more than it uses.
    pub address_bytes: Option<u64>,
    /// Maximum bytes of its answer, and of a file that it writes.
    pub output_bytes: u64,
}

impl ChildLimits {
    /// Bind the calling process to these limits.
    pub(crate) fn apply(&self) -> io::Result<()> {
        let bind = |resource, soft: u64, hard: u64| {
            // No limit can be raised over the parent's own limit.
            let inherited = getrlimit(resource).maximum.unwrap_or(u64::MAX);
            let limit =
                Rlimit { current: Some(soft.min(inherited)), maximum: Some(hard.min(inherited)) };
            setrlimit(resource, limit).map_err(io::Error::from)
        };
        bind(Resource::Core, 0, 0)?;
        bind(Resource::Nofile, FILES, FILES)?;
        bind(Resource::Fsize, self.output_bytes, self.output_bytes)?;
        bind(Resource::Data, self.memory_bytes, self.memory_bytes)?;
        if let Some(bytes) = self.address_bytes {
            bind(Resource::As, bytes, bytes)?;
        }
        // At the soft limit a signal ends it, which shows the reason. The hard limit ends it in any
        // case.
        let seconds = self.cpu.as_secs().max(1);
        bind(Resource::Cpu, seconds, seconds + 1)
    }
}
