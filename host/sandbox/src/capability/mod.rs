//! What a plugin may ask of the host, one file a capability: how it is linked, what a call may use of
//! it, and what it does.
//!
//! Every function here runs within the call's turn, so its CPU time is charged to the call. One that
//! takes more than a few hundred nanoseconds first lets others go on where the turn was long
//! ([`Meter::take_turns`]). Large work goes off the serving threads first
//! ([`Meter::off_serving_threads`]), asks between its parts whether it may go on, and counts its memory
//! before it is allocated.
//!
//! [`Meter::take_turns`]: crate::meter::Meter::take_turns
//! [`Meter::off_serving_threads`]: crate::meter::Meter::off_serving_threads

mod image;
mod log;
mod tensors;
mod types;

use wasmtime::component::Linker;

pub(crate) use self::log::LogBudget;
use crate::bindings;
use crate::call::{CallState, Limited};
use crate::meter::CpuExhausted;

/// Bytes that a host function copies, or elements that it looks at, on a serving thread: about half
/// a millisecond.
const INLINE_BYTES_MAX: usize = 1 << 20;

/// Elements that are looked at between two questions whether the call may go on.
const ELEMENTS_PER_PART: usize = 64 << 10;

/// Link every capability.
pub(crate) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    types::link(linker)?;
    tensors::link(linker)?;
    image::link(linker)?;
    log::link(linker)?;
    bindings::prepare::add_to_linker::<_, wasmtime::component::HasSelf<_>>(linker, |state| state)
}

impl bindings::prepare::Host for CallState {}

impl CallState {
    /// Get ready to copy `bytes` for the guest: where they are many, off the serving threads, and
    /// counted before they are allocated.
    async fn before_copying(&mut self, bytes: usize) -> wasmtime::Result<()> {
        let limit = self.limits.memory_bytes;
        if bytes > limit {
            let limit =
                format!("{limit} bytes of memory, into which {bytes} bytes were to be copied");
            return Err(Limited::Call(limit).into());
        }
        self.before_looking_at(bytes).await?;
        Ok(self.hold(bytes)?)
    }

    /// Get ready to look at `bytes`: where the turn was long, others go on first; where they are many, off the serving
    /// threads.
    async fn before_looking_at(&mut self, bytes: usize) -> Result<(), CpuExhausted> {
        self.meter.take_turns().await?;
        if bytes > INLINE_BYTES_MAX {
            self.meter.off_serving_threads().await;
        }
        Ok(())
    }

    /// Whether work in parts may go on.
    fn may_go_on(&self) -> Result<(), CpuExhausted> {
        self.meter.check().map_err(|_| CpuExhausted)
    }
}

/// The part of `bytes` that `read(offset, length)` asks for.
fn window(bytes: &[u8], offset: u64, length: u64) -> std::ops::Range<usize> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len() - start);
    start..start + length
}
