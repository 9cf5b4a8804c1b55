//! A request as the edges over HTTP get it.

use bytes::Bytes;
use gristmill_core::Name;
use gristmill_serve::{NamedTenant, QuotaError};
use gristmill_snapshot::Snapshot;
use gristmill_transport::Problem;
use gristmill_transport::body::{self, ReadPlan};
use http::request::Parts;
use hyper::body::Incoming;

use crate::inference::Inference;
use crate::observer::RequestContext;

/// A request over HTTP.
pub(crate) struct Call<'a> {
    /// The snapshot that serves it, from its first look-up to its answer.
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) head: &'a Parts,
    pub(crate) body: &'a mut Incoming,
    /// What is noted of it.
    pub(crate) context: &'a mut RequestContext,
}

impl Call<'_> {
    /// Note that the caller was found, and count the request if the caller is a tenant.
    ///
    /// # Errors
    /// The tenant's quota is used up.
    pub(crate) fn admitted(&mut self, caller: Option<NamedTenant<'_>>) -> Result<(), QuotaError> {
        let RequestContext { receipt, quota, is_observed, .. } = &mut *self.context;
        receipt.admitted();
        let Some(tenant) = caller else { return Ok(()) };
        if *is_observed {
            receipt.note().tenant = Some(tenant.name.clone());
        }
        tenant.count_request(receipt.record().arrived, quota)
    }

    /// The whole body, decoded. Large ones of this tenant are decoded off the serving threads.
    ///
    /// # Errors
    /// The body cannot be read by this plan, or not be decoded.
    pub(crate) async fn read(
        &mut self,
        inference: &Inference,
        plan: ReadPlan<'_>,
        tenant: Option<&Name>,
    ) -> Result<Bytes, Problem> {
        let body = body::read(self.body, plan).await?;
        self.context.receipt.note().request_bytes = body.len();
        inference.decoded(&self.head.headers, body, plan, tenant).await
    }
}
