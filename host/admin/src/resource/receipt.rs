//! What a request cost, and where its time went.

use std::collections::BTreeMap;

use gristmill_core::{Charge, Stages};
use serde::Serialize;
use utoipa::ToSchema;

/// What the tenant is charged.
#[derive(Serialize, ToSchema)]
#[schema(as = TrialReceipt)]
pub(super) struct ReceiptDocument {
    rows: u64,
    /// Rows of its largest batch, those of other requests included.
    batch_rows: usize,
    /// The tenants in it.
    batch_tenants: usize,
    plugin_cpu_us: u64,
    model_us: u64,
    queue_us: u64,
}

impl ReceiptDocument {
    pub(super) fn of(charge: &Charge, batch_rows: usize, batch_tenants: usize) -> Self {
        let Charge { rows, plugin_cpu_us, model_us, queue_us, .. } = *charge;
        Self { rows, batch_rows, batch_tenants, plugin_cpu_us, model_us, queue_us }
    }
}

/// The stages that stand beside each other. Others are parts of these.
pub(super) fn stages_us(stages: &Stages) -> BTreeMap<&'static str, u64> {
    let times = [
        ("read", stages.read),
        ("pre", stages.pre),
        ("handle", stages.handle),
        ("queue", stages.queue),
        ("infer", stages.infer),
        ("post", stages.post),
    ];
    let reached = times.into_iter().filter_map(|(stage, time)| Some((stage, time?)));
    reached.map(|(stage, time)| (stage, time.as_micros() as u64)).collect()
}
