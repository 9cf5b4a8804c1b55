//! The limits of the queue, and the queued rows and bytes, in all and for each tenant.
//!
//! Invariant: an index belongs to the same tenant as long as that tenant has requests queued.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use gristmill_core::Name;

use super::entry::Size;
use crate::config::{LaneConfig, QueueLimits};

/// The limit that keeps a request out of the queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// The limit of the whole queue.
    #[error("the model's queue is full: {queued} of {max} {unit}")]
    Lane {
        /// What is queued.
        queued: usize,
        /// The limit.
        max: usize,
        /// The unit: rows, bytes or shapes.
        unit: &'static str,
    },
    /// The limit of one tenant.
    #[error("the tenant's part of the model's queue is full: {queued} of {max} {unit}")]
    Tenant {
        /// What is queued.
        queued: usize,
        /// The limit.
        max: usize,
        /// The unit: rows, bytes or shapes.
        unit: &'static str,
    },
    /// The limit of one priority level.
    #[error("the queue of this priority level is full: {requests} of {max} requests")]
    Level {
        /// Requests queued.
        requests: usize,
        /// The limit.
        max: usize,
    },
}

/// The queued rows and bytes. Each tenant has an index, which it keeps until it is forgotten.
#[derive(Debug, Default)]
pub(super) struct Usage {
    all: Load,
    /// Read several times for each request, while the lane is locked, so its hash is a quick one.
    /// That of the standard library would resist chosen names, but the operator gives the names.
    by_name: HashMap<Name, usize, RandomState>,
    tenants: Vec<Load>,
    /// Indices that belong to no tenant.
    free: Vec<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Load {
    rows: usize,
    bytes: usize,
}

impl Load {
    /// The limit that this and `more` exceed, if any: queued, maximum, unit.
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

    /// Whether there is room for a request of the tenant with this index, if it has one.
    pub(super) fn has_room(
        &self,
        tenant: Option<usize>,
        size: &Size,
        config: &LaneConfig,
    ) -> Result<(), Full> {
        let more = Load { rows: size.rows, bytes: size.bytes };
        if let Some((queued, max, unit)) = self.all.over(more, config.queue) {
            return Err(Full::Lane { queued, max, unit });
        }
        let tenant_load = tenant.map_or(Load::default(), |index| self.tenants[index]);
        match tenant_load.over(more, config.tenant_queue) {
            Some((queued, max, unit)) => Err(Full::Tenant { queued, max, unit }),
            None => Ok(()),
        }
    }

    /// Count a request in; returns the tenant's index.
    pub(super) fn add(&mut self, tenant: &Name, rows: usize, bytes: usize) -> usize {
        let index = match self.by_name.get(tenant) {
            Some(index) => *index,
            None => {
                let index = self.free.pop().unwrap_or_else(|| {
                    self.tenants.push(Load::default());
                    self.tenants.len() - 1
                });
                self.by_name.insert(tenant.clone(), index);
                index
            }
        };
        for load in [&mut self.all, &mut self.tenants[index]] {
            load.rows += rows;
            load.bytes += bytes;
        }
        index
    }

    /// Forget the tenants that are not to be kept and have nothing queued. Returns their indices,
    /// which other tenants may get.
    pub(super) fn retain(&mut self, keep: impl Fn(&Name) -> bool) -> Vec<usize> {
        let Self { by_name, tenants, free, .. } = self;
        let mut forgotten = Vec::new();
        by_name.retain(|name, index| {
            let stays = tenants[*index].rows > 0 || keep(name);
            if !stays {
                forgotten.push(*index);
            }
            stays
        });
        free.extend(&forgotten);
        forgotten
    }

    /// How many tenants are known.
    #[cfg(test)]
    pub(super) fn tenant_count(&self) -> usize {
        self.by_name.len()
    }

    /// Count a request out.
    pub(super) fn remove(&mut self, index: usize, rows: usize, bytes: usize) {
        for load in [&mut self.all, &mut self.tenants[index]] {
            load.rows -= rows;
            load.bytes -= bytes;
        }
    }
}
