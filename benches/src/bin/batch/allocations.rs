//! Allocations per request on the lane's path, counted by an allocator shim.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use gristmill_batch::LaneConfig;
use gristmill_benches::harness::{Harness, submission, tenant};
use gristmill_benches::models::Identity;
use serde_json::{Value, json};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, counted.
pub struct Counting;

// SAFETY: passes everything on to the system's allocator as it came.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn counted() -> (u64, u64) {
    (ALLOCATIONS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed))
}

/// From a submission made to its outputs, over a model that allocates its list of outputs and
/// nothing else; for a small and a large tensor.
pub fn per_request(harness: &Harness) -> Result<Value> {
    let small = measure(harness, 32)?;
    let large = measure(harness, 1 << 18)?;
    Ok(json!({
        "allocations": small.0.max(large.0),
        "bytes_small": small.1,
        "bytes_large": large.1,
        "grown": large.1 / small.1,
    }))
}

/// Allocations and bytes allocated a request with a row of `columns` numbers.
fn measure(harness: &Harness, columns: usize) -> Result<(f64, f64)> {
    const REQUESTS: usize = 20_000;
    let lane = harness.lane_over(Identity, LaneConfig::new(64, 4096))?;
    let row = harness.tensor(&[1, columns], 0.5);
    let (tenant, input) = (tenant("a"), lane.info().inputs[0].name.clone());
    harness.runtime.block_on(async {
        let mut requests: Vec<_> =
            (0..REQUESTS * 2).map(|_| submission(&tenant, &input, &row)).collect();
        for request in requests.split_off(REQUESTS) {
            lane.submit(request, None).await?;
        }
        let (allocations, bytes) = counted();
        for request in requests.drain(..) {
            lane.submit(request, None).await?;
        }
        let after = counted();
        let per = |after: u64, before: u64| (after - before) as f64 / REQUESTS as f64;
        Ok((per(after.0, allocations), per(after.1, bytes)))
    })
}
