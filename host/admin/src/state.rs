//! The parts that all resources of the admin plane share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_control::Control;
use gristmill_core::ErrorCode;
use gristmill_log::Log;
use gristmill_state::AskedChange;
use gristmill_transport::{Problem, Shutdown, Tls};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::caller::{Caller, Tokens};
use crate::events::Feeds;
use crate::observe::Scrapes;
use crate::trials::Trials;
use crate::tries::{TRIES_MAX, Tries};

/// Bounds on uploads.
#[derive(Clone, Copy, Debug)]
pub struct UploadLimits {
    /// Maximum bytes of an uploaded file.
    pub upload_bytes_max: usize,
    /// From the end of the head to the end of the body.
    pub upload_timeout: Duration,
}

/// The parts that resources share.
pub(crate) struct AdminState {
    pub(crate) control: Arc<Control>,
    pub(crate) tokens: Tokens,
    /// The keys that tenants' own people bring.
    pub(crate) tries: Mutex<Tries>,
    pub(crate) limits: UploadLimits,
    pub(crate) log: Log,
    pub(crate) scrapes: Scrapes,
    pub(crate) trials: Arc<dyn Trials>,
    /// Answers about usage that are made at the same time: each may read many files.
    pub(crate) usage_turns: Arc<Semaphore>,
    /// The TLS of each plane that has it, by the plane's name.
    pub(crate) tls: Vec<(&'static str, Tls)>,
    /// What pages follow.
    pub(crate) feeds: Feeds,
    /// Streams of events end when it begins.
    pub(crate) shutdown: Shutdown,
}

impl AdminState {
    /// Count the keys of these changes that are new to their tenants, if the caller is not an
    /// operator: they may be guesses.
    ///
    /// # Errors
    /// They are too many within a short time.
    pub(crate) fn count_new_keys(
        &self,
        caller: &Caller,
        changes: &[AskedChange],
    ) -> Result<(), Problem> {
        let Some(token) = caller.guest() else { return Ok(()) };
        let desired = self.control.desired();
        let new = |change: &AskedChange| {
            let AskedChange::PutKey { tenant, sent, .. } = change else { return None };
            let owner = desired.tenants.get(tenant);
            let is_kept = owner.is_some_and(|owner| {
                owner.spec.keys.values().any(|kept| sent.hashes.include(kept))
            });
            (!is_kept).then_some(sent.hashes.keyed)
        };
        let keys = changes.iter().filter_map(new).collect();
        let counted = self.tries.lock().count(token, keys, Instant::now());
        counted.map_err(|wait| {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            let detail = format!(
                "more than {TRIES_MAX} new keys came with the token {:?} within a minute: try again \
                 in {seconds} s, with at most {TRIES_MAX} of them",
                token.as_str()
            );
            let problem = Problem::new(ErrorCode::TooManyFailures, detail);
            Problem { retry_after_s: seconds, ..problem }
        })
    }
}
