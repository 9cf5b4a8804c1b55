//! Counters of a provider's runs, for the status.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::memory::Sessions;
use crate::options::ProviderKind;

/// The outcomes of a provider's runs, over all of a model's instances.
#[derive(Debug)]
pub struct ProviderHealth {
    /// The provider.
    pub kind: ProviderKind,
    /// Its name: `cuda`, `cpu` or `tract`.
    pub name: &'static str,
    pub(crate) runs: AtomicU64,
    pub(crate) faults: AtomicU64,
    pub(crate) open: AtomicBool,
    pub(crate) sessions: Sessions,
}

impl ProviderHealth {
    pub(crate) fn new(kind: ProviderKind) -> Self {
        let (runs, faults) = (AtomicU64::new(0), AtomicU64::new(0));
        let (open, sessions) = (AtomicBool::new(false), Sessions::default());
        Self { kind, name: kind.as_str(), runs, faults, open, sessions }
    }

    /// Batches it ran.
    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// Batches that failed on it and that another provider ran.
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }

    /// The memory that its sessions take on the host, in bytes: what loading them took, and what
    /// their runs took and keep for the next ones. Loading may have freed a part of it again.
    pub fn memory_bytes(&self) -> u64 {
        self.sessions.bytes()
    }

    /// Whether its circuit breaker is open. Then it is not tried until the breaker allows a trial.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }
}
