//! A request for a model or a pipeline while it runs, and its outputs.

use std::sync::Arc;

use gristmill_core::{Deadline, Receipt};
use gristmill_oip::{InferRequest, Output};
use gristmill_sandbox::Request;
use gristmill_serve::{Caller, Queueing, RequestQuota, Target, Work};
use gristmill_snapshot::Route;

use crate::observer::RequestContext;

/// A request on its way to a model or pipeline that was found.
pub(crate) struct Asked<'a> {
    pub(crate) caller: Caller<'a>,
    pub(crate) target: Target<'a>,
    /// The request's id, for the log.
    pub(crate) id: &'a str,
    pub(crate) deadline: Deadline,
    /// Looks up the value by which a pipeline's candidate can choose its requests.
    pub(crate) sticky: &'a (dyn Fn(&str) -> Option<&'a [u8]> + Sync),
    /// Its context, for its answer and its trace.
    pub(crate) context: &'a mut RequestContext,
    /// The times, rows and provider are noted here.
    pub(crate) receipt: &'a mut Receipt,
    /// The quota of requests of its tenant, for the headers of its answer.
    pub(crate) quota: &'a mut Option<RequestQuota>,
}

/// What the requests of a call for a pipeline have in common.
pub(super) struct PipelineCall {
    pub(super) route: Arc<Route>,
    request_id: Arc<str>,
    pub(super) deadline: Deadline,
    queueing: Queueing,
    is_traced: bool,
}

/// The outputs of a model, and its version.
pub(crate) struct Ran {
    pub(crate) version: u64,
    pub(crate) outputs: Vec<Output>,
}

impl PipelineCall {
    /// A request for a pipeline, or for its candidate, whose way is `route`.
    pub(super) fn of(
        asked: &Asked<'_>,
        route: Arc<Route>,
        request: &InferRequest,
        request_id: Arc<str>,
    ) -> Self {
        let own = Deadline::at(asked.receipt.record().arrived + route.limits.timeout);
        Self {
            request_id,
            deadline: own.min(asked.deadline),
            queueing: Queueing { priority: given_priority(request), timeout: request.timeout },
            is_traced: asked.context.is_sampled(),
            route,
        }
    }

    /// The work on one of the requests.
    pub(super) fn work(&self, request: Request) -> Work {
        Work {
            route: self.route.clone(),
            request,
            request_id: self.request_id.clone(),
            deadline: self.deadline,
            queueing: self.queueing,
            is_trial: false,
            is_traced: self.is_traced,
        }
    }
}

/// The priority level that a request names.
pub(super) fn given_priority(request: &InferRequest) -> Option<u32> {
    Some(request.priority).filter(|priority| *priority > 0)
}
