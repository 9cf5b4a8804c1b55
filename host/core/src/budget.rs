//! Bounds on what one tenant holds of the host's memory.
//!
//! Invariant: bytes count from the moment in which they are read or made until the last of what
//! holds them is dropped. A tenant that holds too much is refused; other tenants are not. At most a
//! quarter of a budget is promised to bodies that have not arrived.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use crate::error::{ClientError, ErrorCode};

/// A bound on the bytes of a tenant's requests and answers that are in the host at the same time.
#[derive(Debug)]
pub struct ByteBudget {
    held: AtomicUsize,
    promised: AtomicUsize,
    max: usize,
}

/// Bytes that count against a budget until they are released or this is dropped.
#[derive(Debug)]
pub struct HeldBytes {
    budget: Arc<ByteBudget>,
    bytes: AtomicUsize,
}

/// Memory that is set aside for bytes that have not arrived yet. It does not count as held.
#[derive(Debug)]
pub struct PromisedBytes {
    budget: Arc<ByteBudget>,
    bytes: usize,
}

/// More bytes than the budget has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this request would raise the tenant's bytes in flight to {wanted}; the limit is {max}")]
pub struct OverBudget {
    /// The bytes that would be held.
    pub wanted: usize,
    /// Maximum bytes that may be held.
    pub max: usize,
}

impl ClientError for OverBudget {
    fn code(&self) -> ErrorCode {
        ErrorCode::TenantBusy
    }
}

impl ByteBudget {
    /// A budget of `max` bytes.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { held: AtomicUsize::new(0), promised: AtomicUsize::new(0), max })
    }

    /// The bytes that are held just now.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether more than half of it is held.
    pub fn is_half_used(&self) -> bool {
        self.held() > self.max / 2
    }

    /// Hold `bytes` that are in memory already, even beyond the budget. Later bytes are then
    /// refused.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> HeldBytes {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        HeldBytes { budget: self.clone(), bytes: AtomicUsize::new(bytes) }
    }

    /// Set memory aside for `bytes` that have not arrived yet. At most a quarter of the budget can
    /// be set aside, so that announced bytes do not keep out bytes that have arrived.
    pub fn promise(self: &Arc<Self>, bytes: usize) -> Option<PromisedBytes> {
        let more = |promised: usize| promised.checked_add(bytes).filter(|all| *all <= self.max / 4);
        self.promised.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(PromisedBytes { budget: self.clone(), bytes })
    }
}

impl Drop for PromisedBytes {
    fn drop(&mut self) {
        self.budget.promised.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl HeldBytes {
    /// The bytes that are held.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A hold of the same budget, of no bytes yet, which may outlive this one.
    pub fn beside(&self) -> Self {
        self.budget.hold(0)
    }

    /// Hold `bytes` more.
    ///
    /// # Errors
    /// [`OverBudget`] if the budget has fewer left. Nothing changes then.
    pub fn try_add(&self, bytes: usize) -> Result<(), OverBudget> {
        let ByteBudget { held, max, .. } = &*self.budget;
        let wanted = held.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if wanted > *max {
            held.fetch_sub(bytes, Ordering::Relaxed);
            return Err(OverBudget { wanted, max: *max });
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Take over all bytes of another hold of the same budget. They count once all the time.
    pub fn take_over(&self, other: &Self) {
        debug_assert!(Arc::ptr_eq(&self.budget, &other.budget), "two budgets");
        let bytes = other.bytes.swap(0, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The same `bytes`, which now count against the budget until they are dropped.
    pub fn attach_to(self, bytes: Bytes) -> Bytes {
        struct Owner {
            bytes: Bytes,
            _held: HeldBytes,
        }
        impl AsRef<[u8]> for Owner {
            fn as_ref(&self) -> &[u8] {
                &self.bytes
            }
        }
        Bytes::from_owner(Owner { bytes, _held: self })
    }

    /// Give back `bytes` of those held, or all where fewer are held.
    pub fn give_back(&self, bytes: usize) {
        let mut released = 0;
        let less = |held: usize| {
            released = bytes.min(held);
            Some(held - released)
        };
        let _ = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.budget.held.fetch_sub(released, Ordering::Relaxed);
    }

    /// Give all bytes back.
    pub fn release(&self) {
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        self.budget.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::{ByteBudget, OverBudget};

    #[test]
    fn no_more_than_a_quarter_is_promised_and_none_of_it_is_held() {
        let budget = ByteBudget::new(100);
        let first = budget.promise(20).unwrap();
        assert!(budget.promise(6).is_none());
        let second = budget.promise(5).unwrap();
        assert_eq!(budget.held(), 0);
        drop(first);
        assert!(budget.promise(20).is_some());
        drop(second);
        assert!(budget.promise(25).is_some());
        assert!(budget.promise(usize::MAX).is_none());
        assert!(budget.promise(25).is_some());
    }

    #[test]
    fn what_is_over_the_budget_is_refused_until_others_give_back() {
        let budget = ByteBudget::new(100);
        let first = budget.hold(0);
        first.try_add(60).unwrap();
        let second = budget.hold(0);
        assert_eq!(second.try_add(41), Err(OverBudget { wanted: 101, max: 100 }));
        second.try_add(40).unwrap();
        first.release();
        second.try_add(60).unwrap();
        assert_eq!(budget.held(), 100);
        assert!(second.beside().try_add(1).is_err());
        second.give_back(30);
        assert_eq!(budget.held(), 70);
        second.give_back(1000);
        assert_eq!(budget.held(), 0);
        drop(second);
        // Bytes that are in memory already are held in any case.
        let there = budget.hold(150);
        assert!(first.try_add(1).is_err());
        drop(there);
        first.try_add(100).unwrap();
    }
}
