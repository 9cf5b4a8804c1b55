//! Taking away candidates whose evaluation has aborted them, by releases.
//!
//! On the server where the bounds were passed, the candidate gets no further request from that
//! moment on. The release takes it away on all servers that share the log, and keeps it so after a
//! restart. Its message has the reason.
//!
//! Invariant: such releases keep a pace, however many candidates are aborted, so that they do not
//! push out those of people.
//!
//! Invariant: a candidate that cannot be loaded, fails or is aborted leaves its pipeline as it is.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use gristmill_snapshot::Pipeline;
use gristmill_state::{AskedChange, ChangeOptions, ReleaseNote, Serving};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

use crate::accounts::Aborted;
use crate::change_request::{AskedChanges, ChangeRequest};
use crate::error::ControlError;
use crate::releases::Releases;

/// The author of these releases.
const AUTHOR: &str = "gristmill";

/// The time between two such releases, or two attempts to make one.
const PAUSE: Duration = Duration::from_secs(30);

/// Maximum candidates of a release, which has the whole document of each of their pipelines.
const TOGETHER_MAX: usize = 100;

/// The candidates that the message of a release names.
const NAMED_MAX: usize = 3;

/// Take away each candidate that arrives, until `releases` is dropped.
pub(crate) async fn take_away(releases: Weak<Releases>, mut aborted: UnboundedReceiver<Aborted>) {
    let mut waiting = VecDeque::new();
    loop {
        if waiting.is_empty() {
            let Some(first) = aborted.recv().await else { return };
            waiting.push_back(first);
        }
        while let Ok(next) = aborted.try_recv() {
            waiting.push_back(next);
        }
        let Some(releases) = releases.upgrade() else { return };
        take_waiting_away(&releases, &mut waiting).await;
        drop(releases);
        sleep(PAUSE).await;
    }
}

/// Make one release without the candidates that wait, or without the first of them if all together
/// are refused: one that cannot be taken away does not hold up the others.
async fn take_waiting_away(releases: &Arc<Releases>, waiting: &mut VecDeque<Aborted>) {
    let serving = releases.publisher.serving();
    waiting.retain(|aborted| is_still_aborted(&serving, aborted));
    drop(serving);
    let together = waiting.len().min(TOGETHER_MAX);
    let mut all: Vec<_> = waiting.drain(..together).collect();
    if all.is_empty() {
        return;
    }
    for Aborted { tenant, pipeline, reason, .. } in &all {
        let (tenant, pipeline) = (tenant.as_str(), pipeline.as_str());
        tracing::warn!(tenant, pipeline, reason, "candidate aborted");
    }
    let Err(error) = make_release(releases, &all).await else { return };
    if all.len() > 1 && make_release(releases, &all[..1]).await.is_ok() {
        all.remove(0);
    } else {
        all.rotate_left(1);
    }
    tracing::warn!(%error, candidates = all.len(), "aborted candidates are not taken away yet");
    waiting.extend(all);
}

/// Whether the candidate that serves is the aborted one, and not one that was put since.
fn is_still_aborted(serving: &Serving, aborted: &Aborted) -> bool {
    let tenant = serving.snapshot.tenants.get(&aborted.tenant);
    let pipeline = tenant.and_then(|tenant| tenant.pipelines.get(&aborted.pipeline));
    match pipeline {
        Some(Pipeline::Ready(route)) => {
            route.candidate.as_ref().is_some_and(|candidate| !candidate.evaluation.is_running())
        }
        // Whether it is the same is decided by its document.
        Some(Pipeline::Unavailable(_)) => true,
        None => false,
    }
}

/// What the release says. Each tenant's own people read it, so it has names only if they are those
/// of one tenant.
fn message_of(aborted: &[Aborted]) -> String {
    let is_one = aborted.windows(2).all(|two| two[0].tenant == two[1].tenant);
    if !is_one {
        return format!("{} candidates aborted: the server's log has the reasons", aborted.len());
    }
    let named =
        aborted.iter().take(NAMED_MAX).map(|Aborted { tenant, pipeline, reason, .. }| {
            format!("candidate of {tenant}/{pipeline} aborted: {reason}")
        });
    let mut message = named.collect::<Vec<_>>().join("; ");
    if aborted.len() > NAMED_MAX {
        message.push_str(&format!("; and {} more", aborted.len() - NAMED_MAX));
    }
    message
}

async fn make_release(releases: &Arc<Releases>, aborted: &[Aborted]) -> Result<(), ControlError> {
    let note = ReleaseNote { by: Some(AUTHOR.into()), message: Some(message_of(aborted)) };
    // The pipeline itself has served all the time, so its samples need not run.
    let options = ChangeOptions { note, skips_samples: true, ..ChangeOptions::default() };
    let abort = |Aborted { tenant, pipeline, candidate, .. }: &Aborted| AskedChange::Abort {
        tenant: tenant.clone(),
        pipeline: pipeline.clone(),
        only: Some(candidate.clone().into()),
    };
    let asked = AskedChanges::List(aborted.iter().map(abort).collect());
    releases.run(ChangeRequest::of(asked, options)).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::name;

    fn aborted(tenant: &str) -> Aborted {
        let candidate = serde_json::from_value(serde_json::json!({ "pre": "new" })).unwrap();
        let (tenant, pipeline) = (name(tenant), name("digits"));
        Aborted { tenant, pipeline, candidate, reason: "3 of 4 failed".into() }
    }

    #[test]
    fn a_release_names_the_candidates_of_one_tenant_only() {
        let one = "candidate of acme/digits aborted: 3 of 4 failed";
        assert_eq!(message_of(&[aborted("acme")]), one);
        assert_eq!(message_of(&[aborted("acme"), aborted("acme")]), format!("{one}; {one}"));
        let mixed = message_of(&[aborted("acme"), aborted("rival")]);
        assert_eq!(mixed, "2 candidates aborted: the server's log has the reasons");
    }
}
