//! Living with runs that do not end: replacing their instances, and refusing a model that has too
//! many of them. The maker of a lane passes this in; `watch` and `state::recovery` use it.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use gristmill_core::Model;

/// Runs of one model's file that may be lost at the same time; with one more the model is refused.
pub const LOST_RUNS_MAX: usize = 2;

/// Makes an instance in place of a lost one. Blocks for as long as that takes.
pub type Replace = Box<dyn Fn() -> Result<Box<dyn Model>, String> + Send + Sync>;

/// The parts that a lane needs for runs that do not end.
#[derive(Default)]
pub struct Upkeep {
    /// Makes an instance in place of a lost one. None: a lost instance is not replaced.
    pub replace: Option<Replace>,
    /// Lost runs of the model's file that still go on, over all of its lanes.
    pub lost_runs: Arc<AtomicUsize>,
}

/// Why a model with so many lost runs is refused.
pub fn refusal(lost_runs: usize) -> String {
    format!(
        "{lost_runs} of its runs do not end, although they were told to: upload another file, or \
         restart the server"
    )
}
