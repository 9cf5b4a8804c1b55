//! Many requests at the same time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Repeat `work` on `threads` threads while `body` runs. `body` receives the results of `work`. If
/// a thread panics, the test fails; if all do, the receiver ends.
pub(crate) fn under_load<T: Send, R>(
    threads: usize,
    work: impl Fn(usize) -> T + Sync,
    body: impl FnOnce(&Receiver<T>) -> R,
) -> R {
    let ended = AtomicBool::new(false);
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for index in 0..threads {
            let (sender, work, ended) = (sender.clone(), &work, &ended);
            scope.spawn(move || repeat(index, work, &sender, ended));
        }
        drop(sender);
        let _end = EndOnDrop(&ended);
        body(&receiver)
    })
}

fn repeat<T>(index: usize, work: impl Fn(usize) -> T, sender: &Sender<T>, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        // Sending fails only when the test has ended.
        let _ = sender.send(work(index));
    }
}

/// Ends the load when the body returns, and also when it panics.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
