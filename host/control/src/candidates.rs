//! Taking away candidates whose evaluation has aborted them, by a release.
//!
//! On the server where the bounds were passed, the candidate gets no further request from that
//! moment on. The release takes it away on all servers that share the log, and keeps it so after a
//! restart. Its message has the reason.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

use crate::accounts::Aborted;
use crate::asked::AskedChange;
use crate::change_request::ChangeRequest;
use crate::error::ControlError;
use crate::release::change::ReleaseNote;
use crate::releases::Releases;
use crate::terms::Terms;

/// The author of these releases.
const AUTHOR: &str = "gristmill";

/// The first and the longest time between two attempts to make such a release.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Take away each candidate that arrives, until `releases` is dropped.
pub(crate) async fn take_away(releases: Weak<Releases>, mut aborted: UnboundedReceiver<Aborted>) {
    while let Some(aborted) = aborted.recv().await {
        let Aborted { tenant, pipeline, reason, .. } = &aborted;
        let (tenant, pipeline) = (tenant.as_str(), pipeline.as_str());
        tracing::warn!(tenant, pipeline, reason, "candidate aborted");
        // Each pipeline has one candidate, and each candidate is aborted once.
        tokio::spawn(take_one_away(releases.clone(), aborted));
    }
}

async fn take_one_away(releases: Weak<Releases>, aborted: Aborted) {
    let mut pause = PAUSE_MIN;
    while let Some(releases) = releases.upgrade() {
        let Err(error) = make_release(&releases, &aborted).await else { return };
        drop(releases);
        let (tenant, pipeline) = (aborted.tenant.as_str(), aborted.pipeline.as_str());
        tracing::warn!(tenant, pipeline, %error, "an aborted candidate is not taken away yet");
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

async fn make_release(releases: &Arc<Releases>, aborted: &Aborted) -> Result<(), ControlError> {
    let Aborted { tenant, pipeline, candidate, reason } = aborted;
    let message = format!("candidate of {tenant}/{pipeline} aborted: {reason}");
    let note = ReleaseNote { by: Some(AUTHOR.into()), message: Some(message) };
    // What serves instead is what served all the time.
    let terms = Terms { note, skips_samples: true, ..Terms::default() };
    let (tenant, pipeline) = (tenant.clone(), pipeline.clone());
    let abort = AskedChange::Abort { tenant, pipeline, only: Some(candidate.clone().into()) };
    releases.run(ChangeRequest::one(abort, terms)).await.map(drop)
}
