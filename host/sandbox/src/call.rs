//! The state of one call: what it holds, what it may still use.

use std::sync::Arc;

use async_trait::async_trait;
use gristmill_core::{BufferPool, HeldBytes, OverBudget, PluginLimits};
use wasmtime::ResourceLimiterAsync;
use wasmtime::component::ResourceTable;

use crate::capability::LogBudget;
use crate::meter::{CpuExhausted, Meter};
use crate::plugin::Grant;

/// Linear memory from which a guest is large: giving it back takes about a millisecond.
const LARGE_MEMORY_BYTES: usize = 8 << 20;

/// Linear memory that a guest does not get on a serving thread: one instruction writes to all of it, cannot be
/// interrupted, and takes about 10 ms where the pages are new.
const HUGE_MEMORY_BYTES: usize = 24 << 20;

/// The data of a call's store.
pub(crate) struct CallState {
    pub(crate) table: ResourceTable,
    pub(crate) limiter: Limiter,
    pub(crate) limits: PluginLimits,
    pub(crate) pool: BufferPool,
    pub(crate) meter: Arc<Meter>,
    pub(crate) log: LogBudget,
    host_bytes_used: usize,
}

/// A limit on what the host holds for a guest was reached; ends the guest like a trap.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Limited {
    /// One of the call's own limits.
    #[error("over the limit of {0}")]
    Call(String),
    /// The owner's calls together hold too much.
    #[error(transparent)]
    Owner(#[from] OverBudget),
}

impl CallState {
    pub(crate) fn new(grant: Grant<'_>, meter: Arc<Meter>, pool: BufferPool) -> Self {
        let Grant { limits, account, plugin } = grant;
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        Self {
            table,
            limiter: Limiter::new(limits, account.bytes.hold(0), meter.clone()),
            limits: limits.clone(),
            pool,
            meter,
            log: LogBudget::new(plugin.cloned(), limits.log_bytes),
            host_bytes_used: 0,
        }
    }

    /// Count `bytes` that the host is about to hold for this call, until the call ends.
    /// Cumulative: freeing a resource gives nothing back, so that a loop of creating and dropping
    /// ends too.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), Limited> {
        let used = self.host_bytes_used.saturating_add(bytes);
        let limit = self.limits.host_memory_bytes;
        if used > limit {
            return Err(Limited::Call(format!("{limit} bytes of tensors and pictures")));
        }
        self.limiter.held.try_add(bytes)?;
        self.host_bytes_used = used;
        Ok(())
    }

    /// Give back `bytes` of what [`hold`](Self::hold) counted: memory of an operation that is over.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.host_bytes_used = self.host_bytes_used.saturating_sub(bytes);
        self.limiter.held.give_back(bytes);
    }

    /// An error where the CPU budget is used up: host functions ask when their work is done.
    pub(crate) fn check_cpu(&self) -> Result<(), CpuExhausted> {
        if self.meter.is_exhausted() { Err(CpuExhausted) } else { Ok(()) }
    }
}

/// Counts memory and tables over all of a store's instances.
pub(crate) struct Limiter {
    memory_bytes: usize,
    memory_bytes_max: usize,
    table_elements: usize,
    table_elements_max: usize,
    instances_max: usize,
    meter: Arc<Meter>,
    /// What the call holds of its owner's budget.
    held: HeldBytes,
    /// What was refused, so that the trap that follows can be told from the guest's own.
    pub(crate) refused: Option<Limited>,
}

impl Limiter {
    fn new(limits: &PluginLimits, held: HeldBytes, meter: Arc<Meter>) -> Self {
        Self {
            memory_bytes: 0,
            memory_bytes_max: limits.memory_bytes,
            table_elements: 0,
            table_elements_max: limits.table_elements,
            instances_max: limits.instances,
            meter,
            held,
            refused: None,
        }
    }

    /// Count `bytes` more of linear memory.
    fn grow(&mut self, bytes: usize) -> Result<(), Limited> {
        let total = self.memory_bytes.saturating_add(bytes);
        if total > self.memory_bytes_max {
            return Err(Limited::Call(format!("{} bytes of memory", self.memory_bytes_max)));
        }
        self.held.try_add(bytes)?;
        self.memory_bytes = total;
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
            let limit = format!("{} table elements", self.table_elements_max);
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
}
