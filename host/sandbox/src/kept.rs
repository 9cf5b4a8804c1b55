//! Images, tensors and blobs that the first call of a request keeps for the second one.
//!
//! Invariant: from the first of them on, all that the host held for the first call counts against
//! its owner's budget until the request has ended. A blob or a tensor can be a small part of a
//! large buffer, so their own lengths would not do.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{BufferPool, HeldBytes, OverBudget, Tensor};
use gristmill_imaging::Pixels;
use parking_lot::Mutex;

use crate::account::Account;
use crate::queue::Half;

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
}

/// What a call may do with it: the first one of a request puts, the second one takes.
#[derive(Clone)]
pub(crate) struct KeptAccess {
    pub(crate) kept: Arc<Kept>,
    pub(crate) half: Half,
}

impl Kept {
    /// Nothing yet, for a request of `account`.
    pub(crate) fn new(account: &Account) -> Arc<Self> {
        Arc::new(Self { things: Mutex::default(), held: account.bytes.hold(0) })
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

#[cfg(test)]
mod tests {
    use gristmill_core::ByteBudget;

    use super::*;

    #[test]
    fn what_is_kept_counts_until_the_request_has_ended() {
        let account = Account::new(1, 1, ByteBudget::new(100));
        let kept = Kept::new(&account);
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
