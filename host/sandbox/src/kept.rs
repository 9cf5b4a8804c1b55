//! Images, tensors and blobs that the first call of a request keeps for the second one.
//!
//! Invariant: from the first of them on, all that the host held for the first call counts against
//! its owner's budget until the request has ended. A blob or a tensor can be a small part of a
//! large buffer, so their own lengths would not do. What is large is dropped on the threads for
//! long calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{BufferPool, HeldBytes, OverBudget, Tensor};
use gristmill_imaging::Pixels;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::account::Account;
use crate::queue::Half;

/// The bytes for which an entry of the map counts, besides its name. Its nodes are at least half
/// full.
pub(crate) const ENTRY_BYTES: usize = 2 * size_of::<(String, Thing)>();

/// More than this is not dropped on a serving thread.
pub(crate) const INLINE_DROP_BYTES_MAX: usize = 4 << 20;

/// What is kept.
pub(crate) enum Thing {
    Pixels(Pixels),
    Tensor(Tensor),
    Blob(Bytes),
}

impl Thing {
    /// The bytes for which it counts in the call that takes it.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Pixels(pixels) => BufferPool::bytes_taken(pixels.data().len()),
            Self::Tensor(tensor) => tensor.as_bytes().len(),
            Self::Blob(blob) => blob.len(),
        }
    }
}

/// All that a request keeps.
pub(crate) struct Kept {
    things: Mutex<BTreeMap<String, Thing>>,
    held: HeldBytes,
    long: Handle,
}

/// What a call may do with it: the first one of a request puts, the second one takes.
#[derive(Clone)]
pub(crate) struct KeptAccess {
    pub(crate) kept: Arc<Kept>,
    pub(crate) half: Half,
}

impl Kept {
    /// Nothing yet, for a request of `account`. `long` has the threads for long calls.
    pub(crate) fn new(account: &Account, long: Handle) -> Arc<Self> {
        Arc::new(Self { things: Mutex::default(), held: account.bytes.hold(0), long })
    }

    /// The number of things, without that of this name.
    pub(crate) fn others(&self, name: &str) -> usize {
        let things = self.things.lock();
        things.len() - usize::from(things.contains_key(name))
    }

    /// Keep `thing`, which belongs to a call for which the host holds `call_bytes`.
    ///
    /// # Errors
    /// [`OverBudget`] if the owner has too little left.
    pub(crate) fn put(
        &self,
        name: String,
        thing: Thing,
        call_bytes: usize,
    ) -> Result<(), OverBudget> {
        self.held.try_add(call_bytes.saturating_sub(self.held.bytes()))?;
        self.things.lock().insert(name, thing);
        Ok(())
    }

    /// What is kept under this name.
    pub(crate) fn take(&self, name: &str) -> Option<Thing> {
        self.things.lock().remove(name)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.held.bytes() <= INLINE_DROP_BYTES_MAX {
            return;
        }
        let things = std::mem::take(self.things.get_mut());
        let held = self.held.beside();
        held.take_over(&self.held);
        self.long.spawn(async move {
            drop(things);
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
    fn what_is_large_is_dropped_on_the_threads_for_long_calls() {
        let long = Builder::new_current_thread().build().unwrap();
        for (bytes, is_moved) in [(INLINE_DROP_BYTES_MAX, false), (5 << 20, true)] {
            let account = Account::new(1, 1, ByteBudget::new(8 << 20));
            let kept = Kept::new(&account, long.handle().clone());
            kept.put("a".into(), Thing::Blob(Bytes::new()), bytes).unwrap();
            drop(kept);
            assert_eq!(account.bytes.held() > 0, is_moved);
            // Runs what was moved.
            long.block_on(tokio::task::yield_now());
            assert_eq!(account.bytes.held(), 0);
        }
    }

    #[test]
    fn what_is_kept_counts_until_the_request_has_ended() {
        let account = Account::new(1, 1, ByteBudget::new(100));
        let long = Builder::new_current_thread().build().unwrap();
        let kept = Kept::new(&account, long.handle().clone());
        let blob = || Thing::Blob(Bytes::from_static(b"1234"));
        kept.put("a".into(), blob(), 60).unwrap();
        kept.put("b".into(), blob(), 60).unwrap();
        assert_eq!((account.bytes.held(), kept.others("b")), (60, 1));
        assert!(kept.put("c".into(), blob(), 101).is_err());
        assert_eq!(kept.take("a").map(|thing| thing.bytes()), Some(4));
        assert!(kept.take("a").is_none() && kept.take("c").is_none());
        assert_eq!(account.bytes.held(), 60);
        drop(kept);
        assert_eq!(account.bytes.held(), 0);
    }
}
