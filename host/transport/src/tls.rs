//! TLS on a listener: its certificate, which is replaced when its files change, and the handshakes.
//!
//! In reading order: `files` reads certificate and key and names their faults; `session` makes the
//! settings of sessions from them; `current` has the current settings; `watch` polls the files
//! every few seconds; `threads` compute handshakes, and `handshake` makes the session of one
//! connection.
//!
//! Invariants:
//! - certificate, key and the authorities of clients are replaced together, and only if they fit
//!   each other: a handshake sees one set of them;
//! - a set with a fault never takes the place of one that works;
//! - a handshake has its connection's permit, a client has the time for a head for it, and it is
//!   computed by threads of low priority, so that no request waits for it;
//! - no session is resumed across a replacement. So a client whose authority was removed needs
//!   another certificate.

mod clients;
mod current;
mod files;
mod handshake;
mod session;
mod threads;
mod watch;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use self::current::Current;
pub use self::files::{TlsError, TlsFault, TlsFile, TlsFiles};
pub(crate) use self::handshake::{Newcomer, Secured};
use self::session::Sessions;
use self::threads::Threads;
use crate::line_rate::LineRate;

/// The TLS of one or several listeners; clones share everything.
#[derive(Clone)]
pub struct Tls(Arc<TlsState>);

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsOpenError {
    /// The files have faults, one or more.
    #[error("the files for TLS have faults")]
    Files(Vec<TlsFault>),
    /// The threads for handshakes cannot be started.
    #[error("cannot start threads for handshakes")]
    Threads(#[source] io::Error),
}

/// The state of a listener's TLS.
#[derive(Clone, Debug)]
pub struct TlsReport {
    /// When the certificate that serves ends, as RFC 3339 has it.
    pub not_after: Option<String>,
    /// The number of sets of files that have served, the one of the start included.
    pub loaded: u64,
    /// The faults of the files as they are now, if they cannot serve.
    pub fault: Option<String>,
    /// Handshakes that succeeded.
    pub handshakes: u64,
    /// Handshakes that failed, or did not end in time.
    pub handshakes_failed: u64,
    /// Connections whose first byte was not TLS.
    pub without_tls: u64,
}

struct TlsState {
    current: Arc<Current>,
    threads: Threads,
    counts: Counts,
    /// The lines about clients that do not speak TLS.
    refusals: Mutex<LineRate>,
}

#[derive(Default)]
struct Counts {
    handshakes: AtomicU64,
    failed: AtomicU64,
    without_tls: AtomicU64,
}

impl Tls {
    /// Read the files, start the threads for handshakes, and look for changes of the files from
    /// now on. `listener` is the name for log lines.
    ///
    /// # Errors
    /// All faults of the files at once, or that the system starts no threads.
    pub fn open(listener: &'static str, files: TlsFiles) -> Result<Self, TlsOpenError> {
        let seen = files.seen();
        let sessions = Sessions::read(&files).map_err(TlsOpenError::Files)?;
        let current = Arc::new(Current::new(listener, files, sessions));
        let threads = Threads::start().map_err(TlsOpenError::Threads)?;
        threads.spawn(watch::watch(current.clone(), seen));
        let (counts, refusals) = (Counts::default(), Mutex::default());
        Ok(Self(Arc::new(TlsState { current, threads, counts, refusals })))
    }

    /// The state and the counts so far.
    pub fn report(&self) -> TlsReport {
        let TlsState { current, counts, .. } = &*self.0;
        TlsReport {
            not_after: current.sessions().ends(),
            loaded: current.loaded(),
            fault: current.fault(),
            handshakes: counts.handshakes.load(Ordering::Relaxed),
            handshakes_failed: counts.failed.load(Ordering::Relaxed),
            without_tls: counts.without_tls.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests;
