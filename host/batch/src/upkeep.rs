//! What a lane needs to deal with runs that do not end: a way to replace their instances, and the
//! reason for which a model with too many of them is refused.
//!
//! The maker of a lane passes this in; `watch` and `state::recovery` use it.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use gristmill_core::Model;

/// Maximum runs of one model's file that may be lost at the same time. With one more the model is
/// refused.
pub const LOST_RUNS_MAX: usize = 2;

/// Makes an instance in place of a lost one. Blocks until it is made.
pub type Replace = Box<dyn Fn() -> Result<Box<dyn Model>, ReplaceError> + Send + Sync>;

/// Why an instance could not be made. The type depends on the backend, which this crate does not
/// know.
pub type ReplaceError = Box<dyn Error + Send + Sync>;

/// The parts that a lane needs for runs that do not end.
#[derive(Default)]
pub struct Upkeep {
    /// Makes an instance in place of a lost one. None: a lost instance is not replaced.
    pub replace: Option<Replace>,
    /// The number of lost runs of the model's file that still go on, over all of its lanes.
    pub lost_runs: Arc<AtomicUsize>,
}

/// Why a lane, or a model's file, is refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Refusal {
    /// Too many runs of the model's file are lost.
    #[error(
        "{0} of its runs do not end, although they were told to: upload another file, or restart \
         the server"
    )]
    LostRuns(usize),
    /// The lane has no instance left.
    #[error("its instance cannot be replaced: {0}")]
    NotReplaced(#[source] Arc<dyn Error + Send + Sync>),
}
