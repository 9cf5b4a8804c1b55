//! Where a loading was when it was stopped: it is read from the memory of its runtime.

use std::fmt;

use wasmtime::{ResourceLimiter, Store, StoreLimits};

use crate::frames::Interpreter;

/// The author's functions in which a loading was stopped, the innermost one first.
#[derive(Debug, Default)]
pub(crate) struct Functions(Vec<String>);

impl Functions {
    /// Those in `store`, whose limiter this is.
    #[allow(unsafe_code, reason = "wasmtime lets nobody read a component's memory after a trap")]
    pub(super) fn of<S>(_: &Store<S>, limiter: &Limiter) -> Self {
        let Some(address) = limiter.address else { return Self::default() };
        // SAFETY: the memory had these bytes when the loading began or when it last asked for more,
        // and never gets smaller. It stays in its place as long as the store lives, because
        // wasmtime reserves all addresses that a memory of 32 bits can have. The store is borrowed,
        // so nothing runs in it.
        let memory = unsafe {
            let memory = std::ptr::with_exposed_provenance::<u8>(address);
            std::slice::from_raw_parts(memory, limiter.bytes)
        };
        let interpreter = Interpreter::of(memory, 0);
        Self(interpreter.map(|found| found.functions(memory)).unwrap_or_default())
    }
}

impl fmt::Display for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ", in {}", self.0.join(", called by ")) }
    }
}

/// Bounds a loading, and knows where its memory is and how large at least.
pub(super) struct Limiter {
    limits: StoreLimits,
    address: Option<usize>,
    bytes: usize,
}

impl Limiter {
    pub(super) fn new(limits: StoreLimits) -> Self {
        Self { limits, address: None, bytes: 0 }
    }

    /// The memory is at this address, and has so many bytes.
    pub(super) fn knows_memory(&mut self, address: usize, bytes: usize) {
        self.address = Some(address);
        self.bytes = bytes;
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.bytes = self.bytes.max(current);
        self.limits.memory_growing(current, desired, maximum)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.limits.memory_grow_failed(error)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.limits.table_growing(current, desired, maximum)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.limits.table_grow_failed(error)
    }

    fn instances(&self) -> usize {
        self.limits.instances()
    }

    fn tables(&self) -> usize {
        self.limits.tables()
    }

    fn memories(&self) -> usize {
        self.limits.memories()
    }
}
