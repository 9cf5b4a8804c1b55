//! The memory that the sessions of a model take on the host.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use gristmill_platform::NativeMemory;
use parking_lot::Mutex;

/// The memory of one session, in which some instances of a model run.
#[derive(Debug)]
pub(crate) struct SessionMemory {
    /// What loading it took.
    loaded_bytes: AtomicUsize,
    /// What its runs take.
    pub(crate) runs: NativeMemory,
    /// Whether the session keeps it for the next run.
    keeps: bool,
}

/// The sessions of a model on a provider. Those that are gone take nothing.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<Vec<Weak<SessionMemory>>>);

impl SessionMemory {
    /// That of a session whose runs may take `run_bytes_max`, and keep it for the next run if it
    /// `keeps` them.
    pub(crate) fn new(run_bytes_max: usize, keeps: bool) -> Arc<Self> {
        let (loaded_bytes, runs) = (AtomicUsize::new(0), NativeMemory::new(run_bytes_max));
        Arc::new(Self { loaded_bytes, runs, keeps })
    }

    /// It has been loaded, and took this much.
    pub(crate) fn loaded(&self, bytes: usize) {
        self.loaded_bytes.store(bytes, Ordering::Relaxed);
        // The proof in the child has bounded the weights; only the runs count from here.
        self.runs.reset();
    }

    fn bytes(&self) -> usize {
        let kept = if self.keeps { self.runs.taken_bytes() } else { 0 };
        self.loaded_bytes.load(Ordering::Relaxed) + kept
    }
}

impl Sessions {
    pub(crate) fn add(&self, sessions: Vec<Weak<SessionMemory>>) {
        let mut all = self.0.lock();
        all.retain(|session| session.strong_count() > 0);
        all.extend(sessions);
    }

    pub(crate) fn bytes(&self) -> u64 {
        let sessions = self.0.lock();
        sessions.iter().filter_map(Weak::upgrade).map(|session| session.bytes() as u64).sum()
    }
}
