//! The outcome of a batch for one of its requests, and its times.
//!
//! Plain data between `batch`, which makes it, `split`, which joins the parts of a request, and
//! `statistics`, which adds it up.

use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{BatchRecord, ModelUse, Tensor};

/// The outputs of one request, with the times and the provider of its batch.
#[derive(Default)]
pub(crate) struct Served {
    /// The outputs in the model's order.
    pub(crate) outputs: Vec<Tensor>,
    pub(crate) queued: Duration,
    /// The times of the batch.
    pub(crate) times: Times,
    /// The rows of the batch.
    pub(crate) batch_rows: usize,
    /// The tenants whose requests were in the batch.
    pub(crate) batch_tenants: usize,
    /// The request's use of the model.
    pub(crate) used: ModelUse,
    /// The provider that ran the batch, if the model has several.
    pub(crate) provider: Option<&'static str>,
    /// The batch, if it is traced.
    pub(crate) batch: Option<Arc<BatchRecord>>,
}

/// The times of a batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Copying the inputs together.
    pub input: Duration,
    /// The model's run alone.
    pub run: Duration,
    /// Taking the outputs apart.
    pub output: Duration,
}

impl Times {
    /// The sum of all times.
    pub fn total(&self) -> Duration {
        self.input + self.run + self.output
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.run += other.run;
        self.output += other.output;
    }
}
