//! The state of one call that all of its capabilities share.
//!
//! Refuses to know which capabilities there are: their per-call states are in one field, `states`,
//! whose type the caller chooses (`capability::States` in the server).
//!
//! Invariant: memory that the host holds for a call is counted before it is allocated, against the
//! call's own limit and its owner's budget.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{BufferPool, HeldBytes, OverBudget, PluginLimits};
use wasmtime::component::ResourceTable;

use crate::error::CallLimit;
use crate::grant::{Grant, PerCall};
use crate::kept::KeptAccess;
use crate::limiter::{Limited, Limiter};
use crate::meter::{CpuExhausted, Meter};
use crate::model_runs::ModelRuns;
use crate::pause::PausablePermits;
use crate::request::{Request, SharedContext};

/// Maximum bytes that a host function copies, or elements that it reads, on a serving thread:
/// about half a millisecond of work.
pub(crate) const INLINE_BYTES_MAX: usize = 1 << 20;

/// How a call runs models.
pub(crate) struct ModelAccess {
    pub(crate) runs: ModelRuns,
    /// The permits that it gives back while it waits.
    pub(crate) permits: Arc<PausablePermits>,
}

/// The data of a call's store, with the per-call states `S` of its capabilities.
pub(crate) struct CallState<S> {
    pub(crate) table: ResourceTable,
    pub(crate) limiter: Limiter,
    pub(crate) limits: PluginLimits,
    pub(crate) pool: BufferPool,
    pub(crate) meter: Arc<Meter>,
    pub(crate) states: S,
    /// The context of the call; none while the instance is made.
    pub(crate) context: Option<SharedContext>,
    /// The request, for a preprocessor.
    pub(crate) request: Option<Request>,
    /// Whether the guest has asked for the parts of the request.
    pub(crate) has_read_parts: bool,
    /// None if the call may run no models.
    pub(crate) models: Option<ModelAccess>,
    /// What its request keeps. None if it has only one call.
    pub(crate) kept: Option<KeptAccess>,
    host_bytes_used: usize,
}

impl<S> CallState<S> {
    /// The state of a call with this grant.
    pub(crate) fn new(grant: Grant<'_>, meter: Arc<Meter>, pool: BufferPool, states: S) -> Self {
        let Grant { limits, account, .. } = grant;
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        Self {
            table,
            limiter: Limiter::new(limits, account.bytes.hold(0), meter.clone()),
            limits: limits.clone(),
            pool,
            meter,
            states,
            context: None,
            request: None,
            has_read_parts: false,
            models: None,
            kept: None,
            host_bytes_used: 0,
        }
    }

    /// The call has ended, and its instance stays.
    pub(crate) fn end(&mut self) {
        self.context = None;
        self.request = None;
        self.models = None;
        self.kept = None;
        // The guest keeps none of the host's memory: what the call made counts no longer. An
        // instance that keeps some stays only for the rest of its request.
        if self.table.is_empty() {
            self.give_back(self.host_bytes_used);
        }
        self.limiter.held().give_back(self.limits.hostcall_bytes_over_default());
    }

    /// A call begins. What it may pass across the border beyond the default counts until it ends.
    ///
    /// # Errors
    /// [`OverBudget`] if the owner has too little left.
    pub(crate) fn begin(&self) -> Result<(), OverBudget> {
        self.limiter.held().try_add(self.limits.hostcall_bytes_over_default())
    }

    /// The instance's next call, with the same limits and the same owner.
    ///
    /// # Errors
    /// [`OverBudget`] if the owner has too little left for its memory.
    pub(crate) fn renew(&mut self, grant: &Grant<'_>, meter: Arc<Meter>) -> Result<(), OverBudget>
    where
        S: PerCall,
    {
        self.limiter.renew(meter.clone())?;
        meter.note_host_memory(self.host_bytes_used);
        self.meter = meter;
        self.states.renew(grant);
        Ok(())
    }

    /// Whether an instance that stays keeps tensors, images or blobs of calls that have ended.
    pub(crate) fn keeps_resources(&self) -> bool {
        !self.table.is_empty()
    }

    /// The number of parts of a form that the guest did not ask for.
    pub(crate) fn unread_parts(&self) -> usize {
        let parts = self.request.as_ref().map_or(0, |request| request.parts.len());
        if self.has_read_parts { 0 } else { parts }
    }

    /// Count `bytes` that the host is about to hold for this call, until the call ends. The count
    /// only grows: freeing a resource gives nothing back, so that a loop of creating and dropping
    /// resources ends at the limit, too.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), Limited> {
        let used = self.with_more(bytes)?;
        self.limiter.held().try_add(bytes)?;
        self.note_used(used);
        Ok(())
    }

    /// Count `bytes` that the host holds for this call already, until the call ends. `held` counts
    /// at least as many against the owner's budget.
    pub(crate) fn take_over(&mut self, bytes: usize, held: &HeldBytes) -> Result<(), Limited> {
        let used = self.with_more(bytes)?;
        held.give_back(held.bytes().saturating_sub(bytes));
        self.limiter.held().take_over(held);
        self.note_used(used);
        Ok(())
    }

    /// The bytes that the host would hold for this call with `bytes` more.
    fn with_more(&self, bytes: usize) -> Result<usize, Limited> {
        let used = self.host_bytes_used.saturating_add(bytes);
        let limit = self.limits.host_memory_bytes;
        match used > limit {
            true => Err(Limited::Call(CallLimit::HostMemory(limit))),
            false => Ok(used),
        }
    }

    fn note_used(&mut self, used: usize) {
        self.host_bytes_used = used;
        self.meter.note_host_memory(used);
    }

    /// The bytes that count for this call.
    pub(crate) fn host_bytes_used(&self) -> usize {
        self.host_bytes_used
    }

    /// Give back `bytes` that [`hold`](Self::hold) counted: memory of an operation that has ended.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.host_bytes_used = self.host_bytes_used.saturating_sub(bytes);
        self.limiter.held().give_back(bytes);
    }

    /// An error if the CPU budget is used up. Host functions call this when their work is done.
    pub(crate) fn check_cpu(&self) -> Result<(), CpuExhausted> {
        if self.meter.is_exhausted() { Err(CpuExhausted) } else { Ok(()) }
    }

    /// Prepare to copy `bytes` for the guest. They are counted before they are allocated. Many
    /// bytes are copied off the serving threads.
    pub(crate) async fn before_copying(&mut self, bytes: usize) -> wasmtime::Result<()> {
        self.within_copied(bytes)?;
        self.before_looking_at(bytes).await?;
        Ok(self.hold(bytes)?)
    }

    /// Bytes that the host holds anyway, for the guest. They are copied once, into the guest's
    /// memory. The functions that lend are linked by hand and replace the generated ones, which
    /// copy into a `Vec` first.
    pub(crate) async fn lend(&mut self, bytes: Bytes) -> wasmtime::Result<Bytes> {
        self.within_copied(bytes.len())?;
        self.before_looking_at(bytes.len()).await?;
        Ok(bytes)
    }

    fn within_copied(&self, bytes: usize) -> Result<(), Limited> {
        let limit = self.limits.memory_bytes;
        if bytes > limit {
            return Err(Limited::Call(CallLimit::Copied { limit, bytes }));
        }
        Ok(())
    }

    /// Prepare to read `bytes`. If this call's turn was long, other calls go on first. Many bytes
    /// are read off the serving threads.
    pub(crate) async fn before_looking_at(&mut self, bytes: usize) -> Result<(), CpuExhausted> {
        self.meter.take_turns().await?;
        if bytes > INLINE_BYTES_MAX {
            self.meter.off_serving_threads().await;
        }
        Ok(())
    }

    /// Whether work that is done in parts may go on.
    pub(crate) fn may_go_on(&self) -> Result<(), CpuExhausted> {
        self.meter.check().map_err(|_| CpuExhausted)
    }
}

/// The part of `bytes` that `read(offset, length)` asks for.
pub(crate) fn window(bytes: &[u8], offset: u64, length: u64) -> Range<usize> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len() - start);
    start..start + length
}

#[cfg(test)]
mod tests {
    use gristmill_core::ByteBudget;

    use super::*;
    use crate::account::Account;

    #[test]
    fn what_a_call_holds_counts_against_its_limit_and_its_owner() {
        let limits = PluginLimits { host_memory_bytes: 100, ..PluginLimits::default() };
        let account = Account::new(1, 1, ByteBudget::new(150));
        let grant = Grant::new(&limits, &account);
        let call = || {
            let meter = Arc::new(Meter::new(limits.cpu));
            CallState::new(grant, meter, BufferPool::new(0), ())
        };
        let (mut first, mut second) = (call(), call());
        first.hold(100).unwrap();
        assert!(matches!(first.hold(1), Err(Limited::Call(_))));
        assert!(matches!(second.hold(51), Err(Limited::Owner(_))));
        first.give_back(60);
        second.hold(51).unwrap();
        drop((first, second));
        assert_eq!(account.bytes.held(), 0);
    }

    #[test]
    fn what_is_taken_over_counts_once() {
        let limits = PluginLimits { host_memory_bytes: 100, ..PluginLimits::default() };
        let account = Account::new(1, 1, ByteBudget::new(150));
        let grant = Grant::new(&limits, &account);
        let meter = Arc::new(Meter::new(limits.cpu));
        let mut call = CallState::new(grant, meter, BufferPool::new(0), ());
        let held = account.bytes.hold(100);
        call.take_over(90, &held).unwrap();
        assert_eq!((call.host_bytes_used(), account.bytes.held()), (90, 90));
        let more = account.bytes.hold(11);
        assert!(matches!(call.take_over(11, &more), Err(Limited::Call(_))));
        drop((held, more, call));
        assert_eq!(account.bytes.held(), 0);
    }

    #[test]
    fn what_a_call_may_pass_counts_until_it_ends() {
        let usual = PluginLimits::default().hostcall_bytes;
        let limits = PluginLimits { hostcall_bytes: usual + 100, ..PluginLimits::default() };
        let account = Account::new(1, 1, ByteBudget::new(150));
        let grant = Grant::new(&limits, &account);
        let meter = Arc::new(Meter::new(limits.cpu));
        let new = || CallState::new(grant, meter.clone(), BufferPool::new(0), ());
        let (mut first, second) = (new(), new());
        first.begin().unwrap();
        assert!(second.begin().is_err());
        assert_eq!(account.bytes.held(), 100);
        first.end();
        assert_eq!(account.bytes.held(), 0);
        second.begin().unwrap();
        drop(second);
        assert_eq!(account.bytes.held(), 0);
    }

    #[test]
    fn a_window_ends_where_the_bytes_end() {
        let bytes = [0; 10];
        assert_eq!(window(&bytes, 2, 3), 2..5);
        assert_eq!(window(&bytes, 8, u64::MAX), 8..10);
        assert_eq!(window(&bytes, u64::MAX, 1), 10..10);
    }
}
