//! The server's process, as Linux shows it.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use gristmill_metrics::{Collected, family};

use super::observed::Heap;

/// The unit of CPU times in `/proc`, per second. Linux has the same on all machines on which
/// this server runs.
const USER_HZ: f64 = 100.0;

/// The figures of the process. Those that the system does not show are 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessFigures {
    /// When the server was started.
    pub(crate) started: SystemTime,
    /// How long ago that was.
    pub(crate) uptime: Duration,
    /// CPU time in user and in system mode, in seconds.
    pub(crate) cpu_s: [f64; 2],
    /// Resident memory, in bytes.
    pub(crate) resident_bytes: u64,
    /// The most of it, in bytes.
    pub(crate) resident_peak_bytes: u64,
    /// Its part that no file has, in bytes. The kernel can evict the rest, pages of files.
    pub(crate) resident_anonymous_bytes: u64,
    /// The allocator's part.
    pub(crate) heap: Heap,
    /// Threads.
    pub(crate) threads: u64,
    /// Open files.
    pub(crate) files: u64,
}

impl ProcessFigures {
    pub(crate) fn read((started, time): (Instant, SystemTime), heap: Heap) -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let number = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let bytes = |key: &str| number(key).unwrap_or_default() << 10;
        Self {
            started: time,
            uptime: started.elapsed(),
            cpu_s: cpu_times().unwrap_or_default(),
            resident_bytes: bytes("VmRSS:"),
            resident_peak_bytes: bytes("VmHWM:"),
            resident_anonymous_bytes: bytes("RssAnon:") + bytes("RssShmem:"),
            heap,
            threads: number("Threads:").unwrap_or_default(),
            files: open_files().unwrap_or_default(),
        }
    }

    pub(crate) fn collect(&self, collected: &mut Collected) {
        collected.add(family::PROCESS_UPTIME, &[], self.uptime.as_secs_f64());
        for (mode, seconds) in ["user", "system"].into_iter().zip(self.cpu_s) {
            collected.add(family::PROCESS_CPU, &[mode], seconds);
        }
        collected.add(family::PROCESS_MEMORY, &[], self.resident_bytes);
        collected.add(family::PROCESS_HEAP, &[], self.heap.committed);
        collected.add(family::PROCESS_THREADS, &[], self.threads);
        collected.add(family::PROCESS_FILES, &[], self.files);
    }
}

/// The CPU time in user and in system mode, in seconds.
fn cpu_times() -> Option<[f64; 2]> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses, and may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut seconds = || Some(fields.next()?.parse::<u64>().ok()? as f64 / USER_HZ);
    Some([seconds()?, seconds()?])
}

fn open_files() -> Option<u64> {
    const FILES: &str = "/proc/self/fd";
    // Since Linux 6.2 the folder's size is their number.
    match fs::metadata(FILES).ok()?.len() {
        0 => Some(fs::read_dir(FILES).ok()?.count() as u64),
        count => Some(count),
    }
}
