//! Polls the files of a listener's TLS every few seconds, and takes them over when they change.
//!
//! Certificate and key are two files, so a poll can see one of them new and the other one old. A
//! fault is therefore told only if the next poll finds it again. Files that change while they are
//! read are read again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::current::Current;
use super::files::{Seen, TlsFault};
use super::session::Sessions;

/// The interval of the polls.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Look for changes for as long as this is polled. `seen` are the files that serve.
pub(super) async fn watch(current: Arc<Current>, seen: Seen) {
    let mut watch = Watch { serving: seen, faulty: None };
    loop {
        sleep(POLL_INTERVAL).await;
        let current = current.clone();
        // A file system may take its time.
        let polling = tokio::task::spawn_blocking(move || {
            watch.poll(&current);
            watch
        });
        match polling.await {
            Ok(polled) => watch = polled,
            Err(error) => {
                tracing::error!(%error, "changes of certificates are no longer seen");
                return;
            }
        }
    }
}

/// What the polls so far have found.
struct Watch {
    /// The files that serve.
    serving: Seen,
    /// The fault that the last poll found.
    faulty: Option<Faulty>,
}

struct Faulty {
    text: String,
    is_told: bool,
}

/// What to do about a fault.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// The next poll may find the other file changed, too.
    Wait,
    Tell,
    /// It was told before.
    Known,
}

impl Watch {
    fn poll(&mut self, current: &Arc<Current>) {
        let seen = current.files.seen();
        if seen == self.serving {
            self.faulty = None;
            current.set_fault(None);
            return;
        }
        let read = Sessions::read(&current.files);
        if current.files.seen() != seen {
            // They are being replaced.
            return;
        }
        match read {
            Ok(sessions) => {
                current.replace(sessions);
                *self = Self { serving: seen, faulty: None };
            }
            Err(faults) => {
                let text = texts(&faults);
                if self.judge(&text) == Fault::Tell {
                    let (listener, error) = (current.listener, located(&faults));
                    tracing::error!(
                        listener,
                        error,
                        "the changed files for TLS are refused: the earlier ones continue to serve"
                    );
                    current.set_fault(Some(text));
                }
            }
        }
    }

    fn judge(&mut self, text: &str) -> Fault {
        match &mut self.faulty {
            Some(faulty) if faulty.text == text => {
                let is_told = std::mem::replace(&mut faulty.is_told, true);
                if is_told { Fault::Known } else { Fault::Tell }
            }
            faulty => {
                *faulty = Some(Faulty { text: text.to_owned(), is_told: false });
                Fault::Wait
            }
        }
    }
}

/// The faults without their files' paths.
fn texts(faults: &[TlsFault]) -> String {
    let texts = faults.iter().map(|fault| format!("{}: {}", fault.file, fault.error));
    texts.collect::<Vec<_>>().join("; ")
}

/// The faults with their files' paths.
fn located(faults: &[TlsFault]) -> String {
    let texts = faults.iter().map(|fault| format!("{}: {}", fault.path.display(), fault.error));
    texts.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::{Fault, Watch};
    use crate::tls::files::TlsFiles;

    #[test]
    fn a_fault_is_told_once_when_a_second_poll_finds_it() {
        let files = TlsFiles { certificate: "a".into(), key: "b".into(), client_ca: None };
        let mut watch = Watch { serving: files.seen(), faulty: None };
        let mut judged = |text: &str| watch.judge(text);
        assert_eq!(["x", "x", "x"].map(&mut judged), [Fault::Wait, Fault::Tell, Fault::Known]);
        assert_eq!(["y", "x", "x"].map(&mut judged), [Fault::Wait, Fault::Wait, Fault::Tell]);
    }
}
