//! `GET /metrics`, and the same at `GET /admin/v1/metrics`: all metrics as Prometheus reads them.

use gristmill_core::ErrorCode;
use gristmill_metrics::CONTENT_TYPE;
use gristmill_transport::{Allowed, Problem};
use http::Method;

use super::query::none;
use super::{Answering, Asked, Resource};
use crate::answer::AdminAnswer;
use crate::operation::{Operation, text};
use crate::permission::Permission;

pub(crate) struct Metrics;

impl Metrics {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        let summary = "Read all metrics, in Prometheus' text format; the same at /metrics";
        vec![Operation::get("metrics", summary).reads_as("text/plain", text())]
    }
}

impl Resource for Metrics {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::SeeServer
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            none(received.query)?;
            let text = state.scrapes.text().await;
            let failed = || Problem::new(ErrorCode::Internal, "the metrics cannot be collected");
            Ok(AdminAnswer::text(text.ok_or_else(failed)?, CONTENT_TYPE))
        })
    }
}
