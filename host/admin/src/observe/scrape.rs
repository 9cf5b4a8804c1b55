//! The metrics as text, for those who ask for it again and again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gristmill_metrics::to_text;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::observer::Observer;

/// A text is not made again before this time has passed: many readers cost no more than a few.
const FRESH: Duration = Duration::from_millis(250);

/// The text of all metrics; clones share it.
#[derive(Clone)]
pub struct Scrapes {
    observer: Arc<Observer>,
    last: Arc<Mutex<Option<Made>>>,
}

/// A text, and when it was made.
struct Made {
    at: Instant,
    text: Bytes,
}

impl Scrapes {
    /// The texts of what `observer` sees.
    pub fn new(observer: Arc<Observer>) -> Self {
        Self { observer, last: Arc::default() }
    }

    /// The observer whose values they are.
    pub(crate) fn observer(&self) -> &Observer {
        &self.observer
    }

    /// The text of now, or of a moment ago. Made on a thread for blocking work, one at a time, to
    /// its end even if its reader leaves. None if that panicked, which is logged.
    pub(crate) async fn text(&self) -> Option<Bytes> {
        let mut last = self.last.clone().lock_owned().await;
        let observer = self.observer.clone();
        let making = spawn_blocking(move || {
            let fresh = last.as_ref().filter(|made| made.at.elapsed() < FRESH);
            if let Some(made) = fresh {
                return made.text.clone();
            }
            let text = Bytes::from(to_text(&observer.collect()));
            *last = Some(Made { at: Instant::now(), text: text.clone() });
            text
        });
        making.await.ok()
    }
}
