//! A request for a model or a pipeline while it runs, and its outputs.

use std::sync::Arc;

use gristmill_core::Deadline;
use gristmill_oip::{InferRequest, Output};
use gristmill_serve::{Caller, Queueing, Target, Work};
use gristmill_snapshot::Route;

use crate::observer::RequestContext;

/// A request on its way to a model or pipeline that was found.
pub(crate) struct InferenceCall<'a> {
    pub(crate) caller: Caller<'a>,
    pub(crate) target: Target<'a>,
    pub(crate) deadline: Deadline,
    /// Looks up the value by which a pipeline's candidate can choose its requests.
    pub(crate) sticky: &'a (dyn Fn(&str) -> Option<&'a [u8]> + Sync),
    /// What is noted of it.
    pub(crate) context: &'a mut RequestContext,
}

/// The outputs of a model, and its version.
pub(crate) struct Ran {
    pub(crate) version: u64,
    pub(crate) outputs: Vec<Output>,
}

impl InferenceCall<'_> {
    /// The work on it for a pipeline, or for its candidate, whose way is `route`.
    pub(super) fn work(&self, route: Arc<Route>, request: &InferRequest) -> Work {
        let context = &self.context;
        let own_deadline = Deadline::at(context.receipt.record().arrived + route.limits.timeout);
        Work {
            queueing: Queueing { priority: given_priority(request), timeout: request.timeout },
            is_traced: context.is_sampled(),
            ..Work::new(route, context.id.clone(), own_deadline.min(self.deadline))
        }
    }
}

/// The priority level that a request names.
pub(super) fn given_priority(request: &InferRequest) -> Option<u32> {
    Some(request.priority).filter(|priority| *priority > 0)
}
