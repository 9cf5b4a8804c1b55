//! What a file was read as, which stays in memory for the calls of its owner.

use std::sync::Arc;

use gristmill_core::HeldBytes;
use tokio::runtime::Handle;

use crate::kept::INLINE_DROP_BYTES_MAX;

/// A tokenizer or a table, and its memory, which counts as its owner's as long as it is there. A
/// large one is dropped on the threads for long calls.
#[derive(Debug)]
pub(crate) struct Parsed<T: Send + Sync + 'static> {
    // Before `_last`, so that this is never the last one.
    form: Arc<T>,
    _last: Last<T>,
}

/// Drops it.
#[derive(Debug)]
struct Last<T: Send + Sync + 'static> {
    form: Option<Arc<T>>,
    held: HeldBytes,
    long: Handle,
}

impl<T: Send + Sync + 'static> Parsed<T> {
    /// `long` has the threads for long calls.
    pub(crate) fn new(form: T, held: HeldBytes, long: Handle) -> Self {
        let form = Arc::new(form);
        Self { form: form.clone(), _last: Last { form: Some(form), held, long } }
    }

    pub(crate) fn form(&self) -> &T {
        &self.form
    }
}

impl<T: Send + Sync + 'static> Drop for Last<T> {
    fn drop(&mut self) {
        if self.held.bytes() <= INLINE_DROP_BYTES_MAX {
            return;
        }
        let form = self.form.take();
        let held = self.held.beside();
        held.take_over(&self.held);
        self.long.spawn(async move {
            drop(form);
            drop(held);
        });
    }
}

#[cfg(test)]
mod tests {
    use gristmill_core::ByteBudget;
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn a_large_one_is_dropped_on_the_threads_for_long_calls() {
        let long = Builder::new_current_thread().build().unwrap();
        for (bytes, is_moved) in [(INLINE_DROP_BYTES_MAX, false), (5 << 20, true)] {
            let budget = ByteBudget::new(8 << 20);
            let parsed = Parsed::new("a form", budget.hold(bytes), long.handle().clone());
            assert_eq!(*parsed.form(), "a form");
            drop(parsed);
            assert_eq!(budget.held() > 0, is_moved);
            // Runs what was moved.
            long.block_on(tokio::task::yield_now());
            assert_eq!(budget.held(), 0);
        }
    }
}
