//! What is queued, in all and by tenant, held against the limits.

use std::collections::HashMap;

use gristmill_core::Name;

use super::Size;
use crate::config::{LaneConfig, QueueLimits};

/// Why a request may not wait.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    #[error("the model's queue is full: {queued} {unit} wait, {max} may")]
    Lane { queued: usize, max: usize, unit: &'static str },
    #[error("the tenant's part of the model's queue is full: {queued} {unit} wait, {max} may")]
    Tenant { queued: usize, max: usize, unit: &'static str },
    #[error("the queue of this priority level is full: {requests} requests wait, {max} may")]
    Level { requests: usize, max: usize },
}

/// Rows and bytes queued. Tenants have an index, which they keep for the lane's life.
#[derive(Debug, Default)]
pub(super) struct Usage {
    all: Held,
    by_name: HashMap<Name, usize>,
    tenants: Vec<Held>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    rows: usize,
    bytes: usize,
}

impl Held {
    /// What `limits` does not hold of this and `more`: queued, maximum, unit.
    fn over(self, more: Self, limits: QueueLimits) -> Option<(usize, usize, &'static str)> {
        if self.rows.saturating_add(more.rows) > limits.rows {
            return Some((self.rows, limits.rows, "rows"));
        }
        let over = self.bytes.saturating_add(more.bytes) > limits.bytes;
        over.then_some((self.bytes, limits.bytes, "bytes"))
    }
}

impl Usage {
    pub(super) fn rows(&self) -> usize {
        self.all.rows
    }

    pub(super) fn index(&self, tenant: &Name) -> Option<usize> {
        self.by_name.get(tenant).copied()
    }

    pub(super) fn admits(
        &self,
        tenant: &Name,
        size: &Size,
        config: &LaneConfig,
    ) -> Result<(), Full> {
        let more = Held { rows: size.rows, bytes: size.bytes };
        if let Some((queued, max, unit)) = self.all.over(more, config.queue) {
            return Err(Full::Lane { queued, max, unit });
        }
        let own = self.index(tenant).map_or(Held::default(), |index| self.tenants[index]);
        match own.over(more, config.tenant_queue) {
            Some((queued, max, unit)) => Err(Full::Tenant { queued, max, unit }),
            None => Ok(()),
        }
    }

    /// Count a request in; returns the tenant's index.
    pub(super) fn add(&mut self, tenant: &Name, rows: usize, bytes: usize) -> usize {
        let index = match self.by_name.get(tenant) {
            Some(index) => *index,
            None => {
                self.tenants.push(Held::default());
                self.by_name.insert(tenant.clone(), self.tenants.len() - 1);
                self.tenants.len() - 1
            }
        };
        for held in [&mut self.all, &mut self.tenants[index]] {
            held.rows += rows;
            held.bytes += bytes;
        }
        index
    }

    /// Count a request out.
    pub(super) fn remove(&mut self, index: usize, rows: usize, bytes: usize) {
        for held in [&mut self.all, &mut self.tenants[index]] {
            held.rows -= rows;
            held.bytes -= bytes;
        }
    }
}
