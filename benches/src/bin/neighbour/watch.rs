//! The server's memory and CPU time, as the kernel counts them. A server that takes too much
//! is killed.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use gristmill_benches::server::resident_bytes;

/// A server over this limit would be killed by the kernel on a real machine.
const RESIDENT_BYTES_MAX: u64 = 6 << 30;
const INTERVAL: Duration = Duration::from_millis(5);

/// The unit of the kernel's figures, which is the same on every Linux.
const TICKS_PER_S: f64 = 100.0;

/// A thread that looks at the server's memory every few milliseconds.
pub(crate) struct Watch {
    ended: Arc<AtomicBool>,
    peak: Arc<AtomicU64>,
    killed: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// The figures seen.
pub(crate) struct Seen {
    pub(crate) peak_bytes: u64,
    /// Whether the server was killed because it took too much.
    pub(crate) killed: bool,
}

impl Watch {
    pub(crate) fn start(pid: u32) -> Self {
        let (ended, killed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let peak = Arc::new(AtomicU64::new(0));
        let shared = (ended.clone(), killed.clone(), peak.clone());
        let thread = thread::spawn(move || {
            let (ended, killed, peak) = shared;
            while !ended.load(Ordering::Relaxed) {
                // The server may have ended.
                let Ok(bytes) = resident_bytes(pid) else { return };
                peak.fetch_max(bytes, Ordering::Relaxed);
                if bytes > RESIDENT_BYTES_MAX {
                    killed.store(true, Ordering::Relaxed);
                    let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
                    return;
                }
                thread::sleep(INTERVAL);
            }
        });
        Self { ended, peak, killed, thread }
    }

    /// Whether the server was killed so far.
    pub(crate) fn killed(&self) -> Arc<AtomicBool> {
        self.killed.clone()
    }

    pub(crate) fn finish(self) -> Result<Seen> {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the watching thread panicked"))?;
        let (peak_bytes, killed) =
            (self.peak.load(Ordering::Relaxed), self.killed.load(Ordering::Relaxed));
        Ok(Seen { peak_bytes, killed })
    }
}

/// The CPU time of all of its threads.
fn cpu(pid: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name may contain blanks, so fields are counted from its end.
    let (_, fields) = stat.rsplit_once(')').context("no name")?;
    let ticks = |at: usize| -> Result<f64> {
        Ok(fields.split_whitespace().nth(at).context("too few fields")?.parse()?)
    };
    Ok(Duration::from_secs_f64((ticks(11)? + ticks(12)?) / TICKS_PER_S))
}

/// The CPU time when the server has come to rest, or after `patience`.
pub(crate) fn cpu_at_rest(pid: u32, patience: Duration) -> Result<Duration> {
    const QUIET: Duration = Duration::from_millis(100);
    let give_up = Instant::now() + patience;
    let mut before = cpu(pid)?;
    loop {
        thread::sleep(QUIET);
        let now = cpu(pid)?;
        if now - before <= Duration::from_millis(10) || Instant::now() > give_up {
            return Ok(now);
        }
        before = now;
    }
}
