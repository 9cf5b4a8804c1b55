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
use crate::release_log::append::{Appended, Draft, Others};
use crate::releases::Releases;
use crate::releases::decide::{Basis, Decision, paced};
use crate::releases::queue::{Outcome, Waiting};
use crate::releases::step::{Published, Ready, Step};
use crate::task::caught;

/// The most times that releases are appended under the lock. Servers that share the log take its
/// next number from each other; a store that takes nothing must not hold the lock for ever.
const APPENDS_MAX: usize = 200;

/// A change that was decided.
struct Decided {
    waiting: Waiting,
    /// The releases by which it was decided and that are still to be appended.
    behind: usize,
    what: What,
    /// The state after it, if it is another one.
    serving: Option<Arc<Serving>>,
}

enum What {
    Answer(Outcome),
    /// Its release is the next of those that are to be appended.
    Release(Published),
}

impl Releases {
    /// Take the next step towards a change, with all that wait for the lock. It runs to its end
    /// even if the client leaves.
    pub(super) async fn step(
        self: &Arc<Self>,
        request: &Arc<ChangeRequest>,
        ready: Ready,
    ) -> (Result<Step, ControlError>, Ready) {
        let answered = self.queue.push(request.clone(), ready);
        let releases = self.clone();
        tokio::spawn(async move { releases.make_waiting().await });
        answered.await.unwrap_or_else(|lost| {
            let (doing, cause) = ("made releases", lost.to_string());
            (Err(ControlError::Internal { doing, cause }), Ready::default())
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
        waiting.into_iter().for_each(|own| own.answer(Err(ControlError::Overtaken)));
    }

    /// Decide changes, and append and publish their releases. Returns the changes that must be
    /// decided again.
    async fn make_once(
        self: &Arc<Self>,
        replayed: &mut Replayed,
        mut waiting: Vec<Waiting>,
    ) -> Vec<Waiting> {
        if let Err(error) = self.read_on(replayed).await {
            refuse_all(waiting, error);
            return Vec::new();
        }
        if !self.serve_log_for(replayed, &mut waiting).await {
            for own in waiting {
                own.answer(Ok(Step::Load(replayed.desired.clone(), Vec::new())));
            }
            return Vec::new();
        }
        let mut basis = Basis {
            head: replayed.head.clone(),
            desired: replayed.desired.clone(),
            serving: self.publisher.serving(),
            touched: BTreeSet::new(),
        };
        let (mut drafts, mut decided) = (Vec::new(), Vec::new());
        for own in waiting {
            decided.push(self.decide_next(&mut basis, &mut drafts, own).await);
        }
        let appended = self.log.append(replayed, drafts).await.map_err(Arc::new);
        let kept = appended.as_ref().map_or(0, |appended| appended.kept);
        let holding = |own: &&Decided| own.holds(kept);
        let serving = decided.iter().rev().filter(holding).find_map(|own| own.serving.clone());
        if let Some(serving) = serving {
            self.publish(serving, replayed).await;
        }
        for own in decided.iter().filter(|own| own.is_release() && !own.holds(kept)) {
            if let Some(TokenUse { name, version }) = paced(&own.waiting.request) {
                self.pace.take_back(name, *version);
            }
        }
        if kept > 0 {
            let (releases, last) = (self.clone(), replayed.head.number);
            tokio::spawn(async move { releases.log.collect(last).await });
        }
        decided.into_iter().filter_map(|own| own.finish(&appended, kept)).collect()
    }

    /// Read what other servers have appended.
    async fn read_on(&self, replayed: &mut Replayed) -> Result<(), ControlError> {
        self.log.read_on(replayed).await?;
        self.log.confirm(replayed).await
    }

    /// Serve the state of the log with what one of the changes has at hand. Returns false if
    /// something is missing.
    async fn serve_log_for(&self, replayed: &mut Replayed, waiting: &mut [Waiting]) -> bool {
        for own in waiting {
            if self.serve_log(replayed, &mut own.ready.at_hand).await {
                return true;
            }
        }
        false
    }

    /// Decide a change by `basis`, and move that on.
    async fn decide_next(
        &self,
        basis: &mut Basis,
        drafts: &mut Vec<Draft>,
        mut waiting: Waiting,
    ) -> Decided {
        let behind = drafts.len();
        let deciding = self.decide(basis, &waiting.request, &mut waiting.ready);
        let (what, serving) = match caught("decided a change", deciding).await {
            Ok(Decision::Release { draft, serving, outcome }) => {
                let serving = basis.take_release(draft.head().clone(), serving);
                drafts.push(*draft);
                if let Some(TokenUse { name, version }) = paced(&waiting.request) {
                    self.pace.count(name, *version, Instant::now());
                }
                (What::Release(outcome), Some(serving))
            }
            Ok(Decision::Step(step, mended)) => {
                (What::Answer(Ok(step)), mended.map(|mended| basis.take(mended)))
            }
            Err(error) => (What::Answer(Err(error)), None),
        };
        Decided { waiting, behind, what, serving }
    }
}

fn refuse_all(waiting: Vec<Waiting>, error: ControlError) {
    let error = Arc::new(error);
    waiting.into_iter().for_each(|own| own.refuse(&error));
}

impl Decided {
    fn is_release(&self) -> bool {
        matches!(self.what, What::Release(_))
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
    ) -> Option<Waiting> {
        let holds = self.holds(kept);
        let Self { waiting, behind, what, .. } = self;
        match (what, appended) {
            (What::Answer(outcome), _) if behind == 0 => waiting.answer(outcome),
            (What::Answer(outcome), Ok(Appended { unconfirmed: None, .. })) if holds => {
                waiting.answer(outcome);
            }
            (What::Answer(_), _) => return Some(waiting),
            (What::Release(_), Err(error)) => waiting.refuse(error),
            (What::Release(outcome), Ok(appended)) => {
                let number = outcome.release;
                let unconfirmed = |source: &StoreError| {
                    let source = source.clone();
                    ControlError::Unconfirmed { number, source }
                };
                let made = match (holds, &appended.unconfirmed, &appended.others) {
                    (true, None, _) => Ok(Step::Made(outcome)),
                    (true, Some(source), _) => Err(unconfirmed(source)),
                    (false, _, Others::Failed { source, unknown }) => match behind - kept {
                        place if place < *unknown => Err(unconfirmed(source)),
                        0 => Err(source.clone().into()),
                        _ => return Some(waiting),
                    },
                    (false, _, Others::Again) => return Some(waiting),
                };
                waiting.answer(made);
            }
        }
        None
    }
}
