//! The set of files that serves, and the fault of a later one that cannot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

use super::files::TlsFiles;
use super::session::Sessions;

/// The current TLS configuration, shared by listeners.
pub(super) struct Current {
    /// The name for log lines.
    pub(super) listener: &'static str,
    pub(super) files: TlsFiles,
    sessions: ArcSwap<Sessions>,
    loaded: AtomicU64,
    fault: Mutex<Option<String>>,
}

impl Current {
    pub(super) fn new(listener: &'static str, files: TlsFiles, sessions: Sessions) -> Self {
        let sessions = ArcSwap::from_pointee(sessions);
        let current =
            Self { listener, files, sessions, loaded: AtomicU64::new(1), fault: Mutex::default() };
        current.warn();
        current
    }

    pub(super) fn sessions(&self) -> Guard<Arc<Sessions>> {
        self.sessions.load()
    }

    /// The number of sets that have served.
    pub(super) fn loaded(&self) -> u64 {
        self.loaded.load(Ordering::Relaxed)
    }

    /// The faults of the files as they are now.
    pub(super) fn fault(&self) -> Option<String> {
        self.fault.lock().clone()
    }

    pub(super) fn set_fault(&self, fault: Option<String>) {
        *self.fault.lock() = fault;
    }

    /// Take over a later set: handshakes that begin from now on use it.
    pub(super) fn replace(&self, sessions: Sessions) {
        self.sessions.store(Arc::new(sessions));
        self.loaded.fetch_add(1, Ordering::Relaxed);
        self.set_fault(None);
        let (listener, file) = (self.listener, self.files.certificate.display());
        let ends = self.sessions().ends();
        tracing::info!(listener, %file, ends, "the certificate was replaced");
        self.warn();
    }

    /// Log what is dangerous about files that can be used all the same.
    fn warn(&self) {
        let (listener, sessions) = (self.listener, self.sessions());
        if sessions.have_ended() {
            let (file, ended) = (self.files.certificate.display(), sessions.ends());
            tracing::warn!(
                listener,
                %file,
                ended,
                "the certificate has expired: clients refuse it"
            );
        }
        if sessions.key_is_open {
            let file = self.files.key.display();
            tracing::warn!(listener, %file, "everyone on this machine may read or change the key");
        }
    }
}
