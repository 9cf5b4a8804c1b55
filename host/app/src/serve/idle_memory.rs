//! Frees memory that no request has used for a while.

use std::time::Duration;

use gristmill_core::BufferPool;
use tokio::task::spawn_blocking;

use crate::process;

/// The time between two rounds. Memory is freed if it was unused for a whole one.
const INTERVAL: Duration = Duration::from_secs(10);

/// The part of the memory kept for later requests that tensor buffers have. Plugin instances have
/// the rest.
const BUFFERS_PART: usize = 5;

/// Maximum bytes of free tensor buffers, and of free memories of plugin instances, of
/// `retained_memory_bytes`.
pub(super) fn shares(retained_memory_bytes: usize) -> (usize, usize) {
    let buffers = retained_memory_bytes / BUFFERS_PART;
    (buffers, retained_memory_bytes - buffers)
}

/// Free unused memory after each interval, until this is dropped.
pub(super) async fn free_unused(pool: BufferPool) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let pool = pool.clone();
        let free = move || {
            pool.trim();
            process::give_back_freed();
        };
        // A panic is logged, and the next round tries again.
        let _ = spawn_blocking(free).await;
    }
}
