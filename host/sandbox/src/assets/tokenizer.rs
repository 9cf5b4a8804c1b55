//! A tokenizer that stays in memory for the calls of its owner.

use std::sync::Arc;

use gristmill_core::HeldBytes;
use gristmill_text::Tokenizer;
use tokio::runtime::Handle;

use crate::kept::INLINE_DROP_BYTES_MAX;

/// A tokenizer, and its memory, which counts as its owner's as long as it is there. A large one is
/// dropped on the threads for long calls.
#[derive(Debug)]
pub(crate) struct KeptTokenizer {
    // Before `_last`, so that this is never the last one.
    tokenizer: Arc<Tokenizer>,
    _last: Last,
}

/// Drops the tokenizer.
#[derive(Debug)]
struct Last {
    tokenizer: Option<Arc<Tokenizer>>,
    held: HeldBytes,
    long: Handle,
}

impl KeptTokenizer {
    /// `long` has the threads for long calls.
    pub(crate) fn new(tokenizer: Tokenizer, held: HeldBytes, long: Handle) -> Self {
        let tokenizer = Arc::new(tokenizer);
        let last = Last { tokenizer: Some(tokenizer.clone()), held, long };
        Self { tokenizer, _last: last }
    }

    pub(crate) fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }
}

impl Drop for Last {
    fn drop(&mut self) {
        if self.held.bytes() <= INLINE_DROP_BYTES_MAX {
            return;
        }
        let tokenizer = self.tokenizer.take();
        let held = self.held.beside();
        held.take_over(&self.held);
        self.long.spawn(async move {
            drop(tokenizer);
            drop(held);
        });
    }
}

#[cfg(test)]
mod tests {
    use gristmill_core::ByteBudget;
    use gristmill_text::Work;
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn a_large_one_is_dropped_on_the_threads_for_long_calls() {
        let long = Builder::new_current_thread().build().unwrap();
        for (bytes, is_moved) in [(INLINE_DROP_BYTES_MAX, false), (5 << 20, true)] {
            let mut reserve = |_: usize| Ok(());
            let mut work =
                Work { check: &|| Ok(()), search_cost_max: usize::MAX, reserve: &mut reserve };
            let file = br#"{"model":{"type":"WordLevel","vocab":{"a":0}}}"#;
            let tokenizer = Tokenizer::read(file, &mut work).unwrap();
            let budget = ByteBudget::new(8 << 20);
            let kept = KeptTokenizer::new(tokenizer, budget.hold(bytes), long.handle().clone());
            assert_eq!(kept.tokenizer().token_to_id("a"), Some(0));
            drop(kept);
            assert_eq!(budget.held() > 0, is_moved);
            // Runs what was moved.
            long.block_on(tokio::task::yield_now());
            assert_eq!(budget.held(), 0);
        }
    }
}
