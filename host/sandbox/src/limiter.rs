//! The limiter of a store: counts the linear memory and the tables of all instances of one call.
//!
//! Invariant: memory is counted against the call's limit and the owner's budget before the guest
//! gets it, and the owner's budget has it back when the limiter is dropped.

use std::sync::Arc;

use async_trait::async_trait;
use gristmill_core::{HeldBytes, OverBudget, PluginLimits};
use wasmtime::ResourceLimiterAsync;

use crate::error::CallLimit;
use crate::meter::Meter;

/// A guest with this much linear memory is large: giving it back can take two milliseconds if the
/// guest has written to all of it. A plugin in Python begins with 15 MiB, and writes to one of
/// them.
const LARGE_MEMORY_BYTES: usize = 16 << 20;

/// A guest gets this much linear memory only off the serving threads. A single instruction can
/// write to all of it. It cannot be interrupted and takes about 10 ms if the pages are new.
pub(crate) const HUGE_MEMORY_BYTES: usize = 24 << 20;

/// Maximum memories of a plugin's instance. This and the number of tables are not settings: each
/// memory reserves address space in every place of the pool, and toolchains make only one.
pub(crate) const MEMORIES_PER_CALL: u32 = 2;

/// Maximum tables of a plugin's instance.
pub(crate) const TABLES_PER_CALL: u32 = 8;

/// The call reached a limit on what the host holds for it. Ends the guest like a trap.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Limited {
    /// One of the call's own limits.
    #[error("over the limit of {0}")]
    Call(CallLimit),
    /// The owner's calls together hold too much.
    #[error(transparent)]
    Owner(#[from] OverBudget),
    /// So many calls of the owner may wait for a clock, and do.
    #[error("{0} calls wait already")]
    Waiting(usize),
}

/// Counts memory and tables over all instances of a store.
pub(crate) struct Limiter {
    memory_bytes: usize,
    memory_bytes_max: usize,
    /// What the memory that last asked for more had then.
    bytes_before_growth: usize,
    table_elements: usize,
    table_elements_max: usize,
    instances_max: usize,
    meter: Arc<Meter>,
    /// The bytes that the call holds of its owner's budget.
    held: HeldBytes,
    /// The linear memory that does not count until the next call.
    uncounted: usize,
    /// The last refusal. A trap after it is due to the limit and not to the guest's code.
    refused: Option<Limited>,
}

impl Limiter {
    pub(crate) fn new(limits: &PluginLimits, held: HeldBytes, meter: Arc<Meter>) -> Self {
        Self {
            memory_bytes: 0,
            bytes_before_growth: 0,
            memory_bytes_max: limits.memory_bytes,
            table_elements: 0,
            table_elements_max: limits.table_elements,
            instances_max: limits.instances,
            meter,
            held,
            uncounted: 0,
            refused: None,
        }
    }

    /// The instance waits for its next call. Until then, only `own` bytes of its memory count:
    /// it shares the others with a file.
    pub(crate) fn rest(&mut self, own_bytes: usize) {
        self.uncounted = self.memory_bytes.saturating_sub(own_bytes);
        self.held.give_back(self.uncounted);
    }

    /// The instance begins another call, in which it may write to all of its memory.
    ///
    /// # Errors
    /// [`OverBudget`] if the owner has too little left.
    pub(crate) fn renew(&mut self, meter: Arc<Meter>) -> Result<(), OverBudget> {
        self.held.try_add(self.uncounted)?;
        self.uncounted = 0;
        if self.memory_bytes >= LARGE_MEMORY_BYTES {
            meter.set_large();
        }
        meter.note_memory(self.memory_bytes);
        self.meter = meter;
        self.refused = None;
        Ok(())
    }

    /// The linear memory of the instance, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// The bytes that the memory of an instance with only one has at least: the growth that was
    /// last asked for may have failed.
    pub(crate) fn certain_bytes(&self) -> usize {
        self.bytes_before_growth
    }

    /// The bytes that the call holds of its owner's budget.
    pub(crate) fn held(&self) -> &HeldBytes {
        &self.held
    }

    /// The limit that memory or a table was last refused for, if it was.
    pub(crate) fn refused(&self) -> Option<&Limited> {
        self.refused.as_ref()
    }

    /// Count `bytes` more of linear memory.
    fn grow(&mut self, bytes: usize) -> Result<(), Limited> {
        let total = self.memory_bytes.saturating_add(bytes);
        if total > self.memory_bytes_max {
            return Err(Limited::Call(CallLimit::Memory(self.memory_bytes_max)));
        }
        self.held.try_add(bytes)?;
        self.memory_bytes = total;
        self.meter.note_memory(total);
        Ok(())
    }
}

#[async_trait]
impl ResourceLimiterAsync for Limiter {
    async fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.bytes_before_growth = current;
        if let Err(limited) = self.grow(desired.saturating_sub(current)) {
            self.refused = Some(limited);
            return Ok(false);
        }
        if self.memory_bytes >= LARGE_MEMORY_BYTES {
            self.meter.set_large();
            self.meter.ask_to_move();
        }
        if self.memory_bytes >= HUGE_MEMORY_BYTES {
            self.meter.off_serving_threads().await;
        }
        Ok(true)
    }

    async fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let total = self.table_elements.saturating_add(desired.saturating_sub(current));
        if total > self.table_elements_max {
            let limit = CallLimit::TableElements(self.table_elements_max);
            self.refused = Some(Limited::Call(limit));
            return Ok(false);
        }
        self.table_elements = total;
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.instances_max
    }

    fn tables(&self) -> usize {
        self.instances_max
    }

    fn memories(&self) -> usize {
        self.instances_max
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use gristmill_core::ByteBudget;

    use super::*;

    #[test]
    fn a_guest_gets_huge_memory_where_long_calls_run() {
        let limits = PluginLimits::default();
        let meter = Arc::new(Meter::new(limits.cpu));
        let held = ByteBudget::new(limits.memory_bytes).hold(0);
        let mut limiter = Limiter::new(&limits, held, meter.clone());
        let mut task = Context::from_waker(Waker::noop());
        meter.resume();
        let small = limiter.memory_growing(0, LARGE_MEMORY_BYTES - 1, None);
        assert!(pin!(small).poll(&mut task).is_ready());
        assert!(!meter.wants_move() && !meter.is_large());
        let large = limiter.memory_growing(LARGE_MEMORY_BYTES - 1, HUGE_MEMORY_BYTES - 1, None);
        assert!(pin!(large).poll(&mut task).is_ready());
        assert!(meter.wants_move() && meter.is_large());
        let mut huge = limiter.memory_growing(HUGE_MEMORY_BYTES - 1, HUGE_MEMORY_BYTES, None);
        assert!(huge.as_mut().poll(&mut task).is_pending());
        meter.set_long();
        assert!(huge.as_mut().poll(&mut task).is_ready());
    }

    #[test]
    fn a_refusal_is_remembered_with_its_limit() {
        let limits = PluginLimits { table_elements: 10, ..PluginLimits::default() };
        let meter = Arc::new(Meter::new(limits.cpu));
        let held = ByteBudget::new(1 << 20).hold(0);
        let mut limiter = Limiter::new(&limits, held, meter);
        assert!(limiter.refused().is_none());
        let mut task = Context::from_waker(Waker::noop());
        let table = limiter.table_growing(0, 11, None);
        assert!(pin!(table).poll(&mut task).is_ready());
        let refused = limiter.refused().map(ToString::to_string);
        assert_eq!(refused.as_deref(), Some("over the limit of 10 table elements"));
        // The owner's budget of 1 MiB is smaller than the call's own limit.
        let memory = limiter.memory_growing(0, 2 << 20, None);
        assert!(pin!(memory).poll(&mut task).is_ready());
        assert!(matches!(limiter.refused(), Some(Limited::Owner(_))));
    }
}
