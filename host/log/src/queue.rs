//! Lines on their way to standard error.
//!
//! Logging only appends to a buffer in memory; a separate thread writes the buffer out. If nobody
//! reads standard error, that thread blocks, the buffer fills, and further lines are dropped and
//! counted. Plugins' lines fill at most half of the buffer; together with lines that clients
//! provoke they fill at most three quarters. So there is always room for lines about the server
//! itself and its operators.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Maximum bytes of lines that wait to be written.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// Maximum memory of a written buffer that is kept for the next lines, in bytes.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// The longest time that the end of the process waits for the last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) struct Queue {
    state: Mutex<LogState>,
    /// Signalled when lines have come or have been written.
    changed: Condvar,
}

#[derive(Default)]
struct LogState {
    waiting: Vec<u8>,
    writing: bool,
    /// The number of dropped lines, and how many of them no line has reported yet.
    dropped: u64,
    untold: u64,
}

/// Who can cause a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The server itself and its operators.
    Own,
    /// Any client.
    Client,
    /// A plugin.
    Plugin,
}

impl Origin {
    /// Maximum bytes in the buffer after such a line is added.
    fn bytes_max(self) -> usize {
        match self {
            Self::Own => WAITING_BYTES_MAX,
            Self::Client => WAITING_BYTES_MAX / 4 * 3,
            Self::Plugin => WAITING_BYTES_MAX / 2,
        }
    }
}

impl Queue {
    /// A queue with a thread that writes its lines to `output`.
    pub(crate) fn start(output: impl Write + Send + 'static) -> io::Result<Arc<Self>> {
        let queue = Arc::new(Self { state: Mutex::default(), changed: Condvar::new() });
        let writer_queue = queue.clone();
        std::thread::Builder::new()
            .name("log".into())
            .spawn(move || writer_queue.write_to(output))?;
        Ok(queue)
    }

    /// Queue a line, or drop and count it.
    pub(crate) fn push(&self, line: &str, origin: Origin) {
        let mut state = self.state.lock();
        if state.waiting.len() + line.len() > origin.bytes_max() {
            state.dropped += 1;
            state.untold += 1;
            return;
        }
        let was_empty = state.waiting.is_empty();
        state.waiting.extend_from_slice(line.as_bytes());
        drop(state);
        if was_empty {
            self.changed.notify_all();
        }
    }

    /// How many lines were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.state.lock().dropped
    }

    /// Wait a moment until all lines are written.
    pub(crate) fn flush(&self) {
        let busy = |state: &mut LogState| state.writing || !state.waiting.is_empty();
        self.changed.wait_while_for(&mut self.state.lock(), busy, FLUSH_TIMEOUT);
    }

    fn write_to(&self, mut output: impl Write) {
        let mut taken = Vec::new();
        loop {
            let idle = |state: &mut LogState| state.waiting.is_empty();
            let mut state = self.state.lock();
            self.changed.wait_while(&mut state, idle);
            std::mem::swap(&mut state.waiting, &mut taken);
            state.writing = true;
            drop(state);
            // There is no other place where this error could be reported.
            let _ = output.write_all(&taken);
            taken.clear();
            taken.shrink_to(KEPT_BYTES_MAX);
            let untold = std::mem::take(&mut self.state.lock().untold);
            if untold > 0 {
                tracing::warn!(
                    lines = untold,
                    "log lines were dropped: they came faster than they were read"
                );
            }
            self.state.lock().writing = false;
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::{Origin, Queue, WAITING_BYTES_MAX};

    /// Signals `begun` when it is asked to write, and writes after `may`.
    struct Slow {
        begun: Sender<Vec<u8>>,
        may: Receiver<()>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.begun.send(bytes.to_vec()).map_err(io::Error::other)?;
            self.may.recv().map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_a_log_that_is_not_read() {
        let (begun, begins) = channel();
        let (allow, may) = channel();
        let queue = Queue::start(Slow { begun, may }).unwrap();
        queue.push("first\n", Origin::Own);
        assert_eq!(begins.recv().unwrap(), b"first\n");
        let line = "x".repeat(1 << 10);
        let most = WAITING_BYTES_MAX / line.len();
        let mut fitted = 0;
        for (origin, part) in
            [(Origin::Plugin, most / 2), (Origin::Client, most / 4), (Origin::Own, most / 4)]
        {
            let dropped = queue.dropped();
            (0..most).for_each(|_| queue.push(&line, origin));
            assert_eq!(queue.dropped() - dropped, (most - part) as u64, "{origin:?}");
            fitted += part;
        }
        assert_eq!(fitted, most);
        allow.send(()).unwrap();
        assert_eq!(begins.recv().unwrap().len(), WAITING_BYTES_MAX, "all that fits is written");
        allow.send(()).unwrap();
        queue.push("last\n", Origin::Plugin);
        assert_eq!(begins.recv().unwrap(), b"last\n");
        allow.send(()).unwrap();
        queue.flush();
        assert!(!queue.state.lock().writing && queue.state.lock().waiting.is_empty());
    }
}
