//! Bytes that count against a tenant's budget while they are in memory.

use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{ByteBudget, HeldBytes, OverBudget};

/// Fewer bytes than this do not count against a budget.
pub(super) const HELD_BYTES_MIN: usize = 4 << 10;

/// Count `bytes` more in `held`. Without it, nothing is counted.
///
/// # Errors
/// The budget has no room for them.
pub fn count(held: Option<&HeldBytes>, bytes: usize) -> Result<(), OverBudget> {
    held.map_or(Ok(()), |held| held.try_add(bytes))
}

/// The bytes of an answer, counted against `budget` until they are dropped. A client that reads
/// slowly keeps them for long.
pub fn held(bytes: Bytes, budget: &Arc<ByteBudget>) -> Bytes {
    let held = (bytes.len() >= HELD_BYTES_MIN).then(|| budget.hold(bytes.len()));
    with_held(bytes, held)
}

/// The bytes of a request, counted against `budget` until they are dropped.
///
/// # Errors
/// The budget has no room for them.
pub fn try_held(bytes: Bytes, budget: &Arc<ByteBudget>) -> Result<Bytes, OverBudget> {
    let held = try_reserved(bytes.len(), budget)?;
    Ok(with_held(bytes, held))
}

/// Count `bytes` before they are made. None if they are too few to count.
///
/// # Errors
/// The budget has no room for them.
pub fn try_reserved(
    bytes: usize,
    budget: &Arc<ByteBudget>,
) -> Result<Option<HeldBytes>, OverBudget> {
    if bytes < HELD_BYTES_MIN {
        return Ok(None);
    }
    let held = budget.hold(0);
    held.try_add(bytes)?;
    Ok(Some(held))
}

/// The bytes, joined with `held`, which is dropped together with them. If they are too few to
/// count, it is dropped at once.
pub fn with_held(bytes: Bytes, held: Option<HeldBytes>) -> Bytes {
    match held {
        Some(held) if bytes.len() >= HELD_BYTES_MIN => held.attach_to(bytes),
        _ => bytes,
    }
}
