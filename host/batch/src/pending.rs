//! Counts each request once: when it succeeds, fails or is dropped.
//!
//! Invariant: each request that was submitted is counted once, in the totals and for its tenant,
//! before its submitter sees how it ended.

use std::time::Instant;

use gristmill_core::Name;

use crate::statistics::CountedRequest;
use crate::submission::Answered;
use crate::sync::now;
use crate::tally::Tally;

/// Guard that counts a request exactly once, on success or on drop. Its submitter holds it, so a
/// client that has its answer sees it counted.
pub(crate) struct Pending<'a> {
    tally: &'a Tally,
    tenant: &'a Name,
    arrived: Instant,
}

impl<'a> Pending<'a> {
    pub(crate) fn new(tally: &'a Tally, tenant: &'a Name, arrived: Instant) -> Self {
        Self { tally, tenant, arrived }
    }

    pub(crate) fn succeeded(self, answered: &Answered) {
        self.count(Some(answered));
        std::mem::forget(self);
    }

    fn count(&self, answered: Option<&Answered>) {
        let time = now().saturating_duration_since(self.arrived);
        self.tally.recent().count_request(&CountedRequest { tenant: self.tenant, answered, time });
    }
}

/// The request was refused, failed, or was dropped by its client.
impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.count(None);
    }
}
