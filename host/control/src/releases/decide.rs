//! Deciding about one change: why it is refused, what it lacks, or the release that makes it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use gristmill_core::Name;
use gristmill_snapshot::Pipeline;
use gristmill_state::{
    Change, Desired, Head, Serving, StateError, TokenUse, differences, refusing, subjects,
};

use crate::change_request::ChangeRequest;
use crate::error::ControlError;
use crate::release_log::append::Draft;
use crate::releases::step::{NextStep, Prepared, Published};
use crate::releases::{Releases, serving_of};
use crate::samples::subject::unproven;

/// The state by which a change is decided: that of the log and of the releases that are to be
/// appended before its own.
pub(super) struct Base {
    pub(super) head: Head,
    pub(super) desired: Desired,
    pub(super) serving: Arc<Serving>,
    /// The tenants that may differ from those that serve.
    pub(super) touched: BTreeSet<Name>,
}

impl Base {
    /// Move on to a state that may be published in place of those before it. Returns it.
    pub(super) fn take(&mut self, mut serving: Serving) -> Arc<Serving> {
        self.touched.append(&mut serving.touched);
        serving.touched = self.touched.clone();
        self.serving = Arc::new(serving);
        self.serving.clone()
    }

    /// Move on to the state of a release.
    pub(super) fn take_release(&mut self, head: Head, serving: Serving) -> Arc<Serving> {
        self.head = head;
        self.desired = (*serving.desired).clone();
        self.desired.settle();
        self.take(serving)
    }
}

/// The decision about a change.
pub(super) enum Decision {
    /// It is made without a release, or lacks something. Parts that failed to load before may serve
    /// now.
    Step(NextStep, Option<Serving>),
    /// A release makes it.
    Release { draft: Box<Draft>, serving: Serving, published: Published },
}

impl Releases {
    /// Decide about a change.
    ///
    /// # Errors
    /// It is refused.
    pub(super) async fn decide(
        &self,
        base: &Base,
        request: &ChangeRequest,
        Prepared { at_hand, proven, fresh, .. }: &mut Prepared,
    ) -> Result<Decision, ControlError> {
        let Base { head, desired, serving: before, .. } = base;
        let step = |step| Ok(Decision::Step(step, None));
        request.options.check_token(desired, SystemTime::now())?;
        request.check_expected(head.number)?;
        if let Some(TokenUse { name, version }) = paced(request) {
            self.pace.check(name, *version, Instant::now())?;
        }
        let planned = request.plan(desired, head.number + 1);
        // If the subject does not exist, the answer is "not found", whatever the conditions are.
        if !matches!(planned, Err(ControlError::State(StateError::NotFound { .. }))) {
            check_conditions(request, before)?;
        }
        check_candidates(request, before)?;
        let plan = planned?;
        let unproven_models = Self::unproven_models(request, &plan, at_hand)?;
        let tenants = before.may_change(&plan.desired);
        let is_at_hand = at_hand.look_up(&self.loader, &plan.desired, &tenants);
        if !is_at_hand || !unproven_models.is_empty() {
            return step(NextStep::Load(plan.desired, unproven_models));
        }
        if plan.desired.is_still(desired) {
            // There is nothing to append. But a part that failed to load may be loaded now.
            let repaired = (!before.faulty.is_empty() && !request.is_dry_run).then(|| {
                let built = self.build(before, head.number, &plan.desired, at_hand);
                serving_of(built, plan.desired)
            });
            let made = self.made(request, before, repaired.as_ref().unwrap_or(before))?;
            return Ok(Decision::Step(NextStep::Made(made), repaired));
        }
        if !request.force {
            Self::check_fit(before, &plan, at_hand)?;
        }
        Self::check_padding(desired, &plan, at_hand)?;
        self.check_compiled(desired, &plan).await?;
        let built = self.build(before, head.number + 1, &plan.desired, at_hand);
        self.check_assets(before, &plan, at_hand, &built.snapshot)?;
        // A candidate can be taken away from a pipeline that cannot serve.
        let put = if request.is_abort() { Vec::new() } else { subjects(&plan.changes) };
        let mut faults = refusing(built.faults.clone(), &before.faulty, &put);
        faults.retain(|fault| {
            before.served(fault) && request.options.token_scope.has_subject(&fault.subject)
        });
        if !faults.is_empty() {
            return Err(ControlError::Refused(faults));
        }
        let serving = serving_of(built, plan.desired.clone());
        if !request.options.skips_samples {
            let mut unproven = unproven(before, &serving, proven);
            // The author neither runs nor sees the samples of tenants beyond its scope.
            unproven
                .retain(|subject| request.options.token_scope.has_tenant(subject.tenant.as_str()));
            if !unproven.is_empty() {
                return step(NextStep::RunSamples(unproven));
            }
        }
        let published = self.made(request, before, &serving)?;
        if request.is_dry_run {
            return step(NextStep::Made(published));
        }
        if self.log.is_shared() {
            let mut files: Vec<_> = plan.changes.iter().filter_map(Change::blob).collect();
            files.retain(|file| !fresh.contains(file));
            if !files.is_empty() {
                return step(NextStep::Refresh(files));
            }
        }
        let draft = Draft::of(head, request.options.note.clone(), plan)?.into();
        Ok(Decision::Release { draft, serving, published })
    }

    /// The outcome of a request, whose release is `after`.
    fn made(
        &self,
        request: &ChangeRequest,
        before: &Serving,
        after: &Serving,
    ) -> Result<Published, ControlError> {
        let release = after.snapshot.release;
        let (tag, mut differences) = match request.subject() {
            Some(subject) => (after.tag(&subject)?, Vec::new()),
            None => (None, differences(before, after)?),
        };
        // A version of a model goes when the last pipeline stops to name it.
        let token_scope = &request.options.token_scope;
        differences.retain(|difference| token_scope.has_subject(&difference.subject));
        let subject = request.subject();
        let subjects = differences.iter().map(|difference| &difference.subject).chain(&subject);
        let power = self.powers(&before.desired, &after.desired, subjects);
        Ok(Published { release, tag, differences, power, samples: Vec::new() })
    }
}

/// The token of a request whose releases have a pace.
pub(super) fn paced(request: &ChangeRequest) -> Option<&TokenUse> {
    let token = request.options.token.as_ref();
    token.filter(|_| !request.options.token_scope.is_server() && !request.is_dry_run)
}

/// Check the conditions of the request.
fn check_conditions(request: &ChangeRequest, serving: &Serving) -> Result<(), ControlError> {
    let conditions = &request.options.conditions;
    if let Some(subject) = request.subject().filter(|_| !conditions.are_none()) {
        conditions.check(&subject, serving.tag(&subject)?)?;
    }
    Ok(())
}

/// Check the candidates that the request ends. One that is promoted must not have passed its
/// bounds. One that is taken away because it passed them must not have begun anew.
fn check_candidates(request: &ChangeRequest, serving: &Serving) -> Result<(), ControlError> {
    let candidate = |(tenant, pipeline): (&Name, &Name)| {
        let pipeline = serving.snapshot.tenants.get(tenant)?.pipelines.get(pipeline)?;
        let Pipeline::Ready(route) = pipeline else { return None };
        route.candidate.as_ref()
    };
    let promoted = request.promoted().and_then(candidate);
    if let Some(why) = promoted.and_then(|candidate| candidate.evaluation.report().aborted) {
        return Err(ControlError::CandidateAborted(why));
    }
    match request.aborted().filter_map(candidate).any(|candidate| candidate.evaluation.is_running())
    {
        true => Err(ControlError::Overtaken),
        false => Ok(()),
    }
}
