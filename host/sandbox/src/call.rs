//! The state of one call: what it holds, what it may still use.

use std::time::Duration;

use gristmill_core::{BufferPool, PluginLimits};
use wasmtime::ResourceLimiter;
use wasmtime::component::ResourceTable;

/// The data of a call's store.
pub(crate) struct CallState {
    pub(crate) table: ResourceTable,
    pub(crate) limiter: Limiter,
    pub(crate) limits: PluginLimits,
    pub(crate) pool: BufferPool,
    cpu_used: Duration,
    host_bytes_used: usize,
    log_bytes_left: Option<usize>,
}

/// The CPU budget is used up; ends the guest like a trap.
#[derive(Debug, thiserror::Error)]
#[error("out of CPU time")]
pub(crate) struct CpuExhausted;

/// A limit on what the host holds for a guest was reached; ends the guest like a trap.
#[derive(Debug, thiserror::Error)]
#[error("over the limit of {0}")]
pub(crate) struct Limited(pub(crate) String);

impl CallState {
    pub(crate) fn new(limits: &PluginLimits, pool: BufferPool) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        Self {
            table,
            limiter: Limiter::new(limits),
            limits: limits.clone(),
            pool,
            cpu_used: Duration::ZERO,
            host_bytes_used: 0,
            log_bytes_left: Some(limits.log_bytes),
        }
    }

    /// Charge CPU time: a tick of the guest's own, or what native work for it took.
    pub(crate) fn charge(&mut self, used: Duration) {
        self.cpu_used += used;
    }

    pub(crate) fn cpu_exhausted(&self) -> bool {
        self.cpu_used > self.limits.cpu
    }

    /// Count `bytes` that the host is about to hold for this call. Cumulative: freeing a resource
    /// gives nothing back, so that a loop of creating and dropping ends too.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), Limited> {
        self.host_bytes_used = self.host_bytes_used.saturating_add(bytes);
        let limit = self.limits.host_memory_bytes;
        if self.host_bytes_used > limit {
            return Err(Limited(format!("{limit} bytes of tensors and pictures")));
        }
        Ok(())
    }

    /// Take `bytes` from the log budget; false where it does not hold them. The first refusal says
    /// so in the log.
    pub(crate) fn may_log(&mut self, bytes: usize) -> bool {
        match self.log_bytes_left {
            Some(left) if left >= bytes => {
                self.log_bytes_left = Some(left - bytes);
                true
            }
            Some(_) => {
                self.log_bytes_left = None;
                let limit_bytes = self.limits.log_bytes;
                tracing::warn!(
                    limit_bytes,
                    "plugin went over its log budget, further lines dropped"
                );
                false
            }
            None => false,
        }
    }
}

/// Counts memory and tables over all of a store's instances.
pub(crate) struct Limiter {
    memory_bytes: usize,
    memory_bytes_max: usize,
    table_elements: usize,
    table_elements_max: usize,
    instances_max: usize,
    /// What was refused, so that the trap that follows can be told from the guest's own.
    pub(crate) refused: Option<String>,
}

impl Limiter {
    fn new(limits: &PluginLimits) -> Self {
        Self {
            memory_bytes: 0,
            memory_bytes_max: limits.memory_bytes,
            table_elements: 0,
            table_elements_max: limits.table_elements,
            instances_max: limits.instances,
            refused: None,
        }
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let total = self.memory_bytes.saturating_add(desired.saturating_sub(current));
        if total > self.memory_bytes_max {
            self.refused = Some(format!("{} bytes of memory", self.memory_bytes_max));
            return Ok(false);
        }
        self.memory_bytes = total;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let total = self.table_elements.saturating_add(desired.saturating_sub(current));
        if total > self.table_elements_max {
            self.refused = Some(format!("{} table elements", self.table_elements_max));
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
