//! The time that is left for a request while its rows are converted.

use std::time::{Duration, Instant};

use gristmill_core::Deadline;
use gristmill_serve::InferError;
use gristmill_transport::Problem;

/// The time of a request.
#[derive(Clone, Copy)]
pub(super) struct TimeLeft {
    deadline: Deadline,
    /// From its arrival to the deadline.
    within: Duration,
}

impl TimeLeft {
    /// The time of a request that arrived at `arrived`.
    pub(super) fn of(arrived: Instant, deadline: Deadline) -> Self {
        Self { deadline, within: deadline.instant().saturating_duration_since(arrived) }
    }

    /// Check that there is time left. This is asked between rows.
    ///
    /// # Errors
    /// The deadline passed.
    pub(super) fn check(self) -> Result<(), Problem> {
        match Instant::now() < self.deadline.instant() {
            true => Ok(()),
            false => Err(InferError::DeadlineExceeded(self.within).into()),
        }
    }
}
