//! A request as the edges over HTTP get it.

use std::sync::Arc;

use gristmill_core::Receipt;
use gristmill_serve::{NamedTenant, QuotaError, RequestQuota};
use gristmill_snapshot::Snapshot;
use http::request::Parts;
use hyper::body::Incoming;

use crate::observer::RequestContext;

/// A request over HTTP.
pub(crate) struct Call<'a> {
    /// The snapshot that serves it, from its first look-up to its answer.
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) head: &'a Parts,
    pub(crate) body: &'a mut Incoming,
    /// The request's id.
    pub(crate) id: &'a Arc<str>,
    /// Its bytes, rows and times are noted here.
    pub(crate) receipt: &'a mut Receipt,
    /// The quota of requests of its tenant, for the headers of its answer.
    pub(crate) quota: &'a mut Option<RequestQuota>,
    /// What is noted of it, for the headers of its answer and for its trace.
    pub(crate) context: &'a mut RequestContext,
}

impl Call<'_> {
    /// Note that the caller was found, and count the request if the caller is a tenant.
    ///
    /// # Errors
    /// The tenant's quota is used up.
    pub(crate) fn admitted(&mut self, caller: Option<NamedTenant<'_>>) -> Result<(), QuotaError> {
        self.receipt.admitted();
        let Some(tenant) = caller else { return Ok(()) };
        if self.context.is_observed {
            self.receipt.note().tenant = Some(tenant.name.clone());
        }
        tenant.count_request(self.receipt.record().arrived, self.quota)
    }
}
