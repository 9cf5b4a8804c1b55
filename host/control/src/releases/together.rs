//! Making the changes that wait for the lock together.
//!
//! They are decided one after the other, each by the state after the ones before it. Each of them
//! is a release of its own, but the releases are appended in one call, and published at once.
//!
//! Invariants:
//! - a change is answered only if the releases that it was decided by are on stable storage: if
//!   not, the change is decided again;
//! - what one change makes the store refuse is not the answer to another one;
//! - a panic while a change is decided is an internal error of that change only. One elsewhere is
//!   one of all of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use gristmill_state::{Serving, TokenUse};
use gristmill_store::StoreError;

use crate::change_request::ChangeRequest;
use crate::error::ControlError;
use crate::release_log::Replayed;
use crate::release_log::append::{Appended, Draft, Rest};
use crate::releases::Releases;
use crate::releases::decide::{Base, Decision, paced};
use crate::releases::queue::{QueuedChange, StepResult};
use crate::releases::step::{NextStep, Prepared, Published};
use crate::task::caught;

/// Maximum times that releases are appended under the lock. Servers that share the log take its
/// next number from each other; a store that takes nothing must not hold the lock for ever.
const APPENDS_MAX: usize = 200;

/// A change that was decided.
struct Decided {
    queued: QueuedChange,
    /// The releases by which it was decided and that are still to be appended.
    behind: usize,
    outcome: ChangeOutcome,
    /// The state after it, if it is another one.
    serving: Option<Arc<Serving>>,
}

enum ChangeOutcome {
    Answer(StepResult),
    /// Appends the next pending release.
    Release(Published),
}

impl Releases {
    /// Take the next step towards a change, with all that wait for the lock. It runs to its end
    /// even if the client leaves.
    pub(super) async fn step(
        self: &Arc<Self>,
        request: &Arc<ChangeRequest>,
        prepared: Prepared,
    ) -> (Result<NextStep, ControlError>, Prepared) {
        let answered = self.queue.push(request.clone(), prepared);
        let releases = self.clone();
        tokio::spawn(async move { releases.make_waiting().await });
        answered.await.unwrap_or_else(|lost| {
            let (doing, cause) = ("made releases", lost.to_string());
            (Err(ControlError::Internal { doing, cause }), Prepared::default())
        })
    }

    /// Make the changes that wait. There are none any more if they were made with an earlier one.
    async fn make_waiting(self: &Arc<Self>) {
        let mut replayed = self.replayed.lock().await;
        let mut waiting = self.queue.take();
        for _ in 0..APPENDS_MAX {
            if waiting.is_empty() {
                return;
            }
            waiting = self.make_once(&mut replayed, waiting).await;
        }
        waiting.into_iter().for_each(|queued| queued.answer(Err(ControlError::Overtaken)));
    }

    /// Decide changes, and append and publish their releases. Returns the changes that must be
    /// decided again.
    async fn make_once(
        self: &Arc<Self>,
        replayed: &mut Replayed,
        mut waiting: Vec<QueuedChange>,
    ) -> Vec<QueuedChange> {
        if let Err(error) = self.read_on(replayed).await {
            refuse_all(waiting, error);
            return Vec::new();
        }
        if !self.serve_log_for(replayed, &mut waiting).await {
            for queued in waiting {
                queued.answer(Ok(NextStep::LoadLog(replayed.desired.clone())));
            }
            return Vec::new();
        }
        let mut base = Base {
            head: replayed.head.clone(),
            desired: replayed.desired.clone(),
            serving: self.publisher.serving(),
            touched: BTreeSet::new(),
        };
        let (mut drafts, mut decided) = (Vec::new(), Vec::new());
        for queued in waiting {
            decided.push(self.decide_next(&mut base, &mut drafts, queued).await);
        }
        let appended = self.log.append(replayed, drafts).await.map_err(Arc::new);
        let kept = appended.as_ref().map_or(0, |appended| appended.kept);
        let holding = |change: &&Decided| change.holds(kept);
        let serving =
            decided.iter().rev().filter(holding).find_map(|change| change.serving.clone());
        if let Some(serving) = serving {
            self.publish(serving, replayed).await;
        }
        for change in decided.iter().filter(|change| change.is_release() && !change.holds(kept)) {
            if let Some(TokenUse { name, version }) = paced(&change.queued.request) {
                self.pace.take_back(name, *version);
            }
        }
        if kept > 0 {
            let (releases, last) = (self.clone(), replayed.head.number);
            tokio::spawn(async move { releases.log.collect(last).await });
        }
        decided.into_iter().filter_map(|change| change.finish(&appended, kept)).collect()
    }

    /// Read what other servers have appended.
    async fn read_on(&self, replayed: &mut Replayed) -> Result<(), ControlError> {
        self.log.read_on(replayed).await?;
        self.log.confirm(replayed).await
    }

    /// Serve the state of the log with what one of the changes has at hand. Returns false if
    /// something is missing.
    async fn serve_log_for(&self, replayed: &mut Replayed, waiting: &mut [QueuedChange]) -> bool {
        for queued in waiting {
            if self.serve_log(replayed, &mut queued.prepared.at_hand).await {
                return true;
            }
        }
        false
    }

    /// Decide a change by `base`, and move that on.
    async fn decide_next(
        &self,
        base: &mut Base,
        drafts: &mut Vec<Draft>,
        mut queued: QueuedChange,
    ) -> Decided {
        let behind = drafts.len();
        let deciding = self.decide(base, &queued.request, &mut queued.prepared);
        let (outcome, serving) = match caught("decided a change", deciding).await {
            Ok(Decision::Release { draft, serving, published }) => {
                let serving = base.take_release(draft.head().clone(), serving);
                drafts.push(*draft);
                if let Some(TokenUse { name, version }) = paced(&queued.request) {
                    self.pace.count(name, *version, Instant::now());
                }
                (ChangeOutcome::Release(published), Some(serving))
            }
            Ok(Decision::Step(step, repaired)) => {
                (ChangeOutcome::Answer(Ok(step)), repaired.map(|serving| base.take(serving)))
            }
            Err(error) => (ChangeOutcome::Answer(Err(error)), None),
        };
        Decided { queued, behind, outcome, serving }
    }
}

fn refuse_all(waiting: Vec<QueuedChange>, error: ControlError) {
    let error = Arc::new(error);
    waiting.into_iter().for_each(|queued| queued.refuse(&error));
}

impl Decided {
    fn is_release(&self) -> bool {
        matches!(self.outcome, ChangeOutcome::Release(_))
    }

    /// Whether the log, which has taken the first `kept` releases, has those that the change was
    /// decided by, and its own.
    fn holds(&self, kept: usize) -> bool {
        self.behind + usize::from(self.is_release()) <= kept
    }

    /// Answer the change, if the log decides it, which has taken the first `kept` releases. Returns
    /// the change otherwise.
    fn finish(
        self,
        appended: &Result<Appended, Arc<ControlError>>,
        kept: usize,
    ) -> Option<QueuedChange> {
        let holds = self.holds(kept);
        let Self { queued, behind, outcome, .. } = self;
        match (outcome, appended) {
            (ChangeOutcome::Answer(step), _) if behind == 0 => queued.answer(step),
            (ChangeOutcome::Answer(step), Ok(Appended { unconfirmed: None, .. })) if holds => {
                queued.answer(step);
            }
            (ChangeOutcome::Answer(_), _) => return Some(queued),
            (ChangeOutcome::Release(_), Err(error)) => queued.refuse(error),
            (ChangeOutcome::Release(published), Ok(appended)) => {
                let number = published.release;
                let unconfirmed = |source: &StoreError| {
                    let source = source.clone();
                    ControlError::Unconfirmed { number, source }
                };
                let made = match (holds, &appended.unconfirmed, &appended.rest) {
                    (true, None, _) => Ok(NextStep::Made(published)),
                    (true, Some(source), _) => Err(unconfirmed(source)),
                    (false, _, Rest::Failed { source, unknown }) => match behind - kept {
                        place if place < *unknown => Err(unconfirmed(source)),
                        0 => Err(source.clone().into()),
                        _ => return Some(queued),
                    },
                    (false, _, Rest::Again) => return Some(queued),
                };
                queued.answer(made);
            }
        }
        None
    }
}
