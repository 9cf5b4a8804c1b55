//! The server's process, as Linux shows it.

use std::fs;
use std::time::Instant;

use gristmill_metrics::{Collected, family};

/// The unit of processor times in `/proc`, per second. Linux has the same on all machines on which
/// this server runs.
const USER_HZ: f64 = 100.0;

pub(crate) fn collect(started: Instant, collected: &mut Collected) {
    collected.add(family::PROCESS_UPTIME, &[], started.elapsed().as_secs_f64());
    if let Some([user, system]) = cpu_times() {
        collected.add(family::PROCESS_CPU, &["user"], user);
        collected.add(family::PROCESS_CPU, &["system"], system);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let number = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    if let Some(kib) = number("VmRSS:") {
        collected.add(family::PROCESS_MEMORY, &[], kib << 10);
    }
    if let Some(threads) = number("Threads:") {
        collected.add(family::PROCESS_THREADS, &[], threads);
    }
    if let Some(files) = open_files() {
        collected.add(family::PROCESS_FILES, &[], files);
    }
}

/// The processor time in user and in system mode, in seconds.
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
