//! Keeping a machine awake while its parts are measured one at a time.
//!
//! A core that has nothing to do goes to sleep, and waking it takes time that a busy machine does
//! not spend. So a thread for each core does nothing in a loop, with the priority that gives way to
//! all others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

use gristmill_platform::Share;

/// Keeps all cores awake until it is dropped.
pub(super) struct Awake {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    pub(super) fn new(cores: usize) -> std::io::Result<Self> {
        let mut awake = Self { ends: Arc::default(), threads: Vec::new() };
        for _ in 0..cores {
            let ends = awake.ends.clone();
            let spin = move || {
                // With another priority it would take what is to be measured.
                if Share::Rest.apply().is_err() {
                    return;
                }
                while !ends.load(Relaxed) {
                    std::hint::spin_loop();
                }
            };
            awake.threads.push(std::thread::Builder::new().name("awake".into()).spawn(spin)?);
        }
        Ok(awake)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
