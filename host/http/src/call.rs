//! A request as the edges over HTTP get it.

use gristmill_core::Receipt;
use gristmill_serve::{NamedTenant, QuotaError, RequestQuota, Variant};
use gristmill_snapshot::Snapshot;
use http::request::Parts;
use hyper::body::Incoming;

/// A request over HTTP.
pub(crate) struct Call<'a> {
    /// The snapshot that serves it, from its first look-up to its answer.
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) head: &'a Parts,
    pub(crate) body: &'a mut Incoming,
    /// The request's id.
    pub(crate) id: &'a str,
    /// Its bytes, rows and times are noted here.
    pub(crate) receipt: &'a mut Receipt,
    /// The quota of requests of its tenant, for the headers of its answer.
    pub(crate) quota: &'a mut Option<RequestQuota>,
    /// The variant of its pipeline that ran it, for a header of its answer.
    pub(crate) variant: &'a mut Option<Variant>,
}

impl Call<'_> {
    /// Note that the caller was found, and count the request if the caller is a tenant.
    ///
    /// # Errors
    /// The tenant's quota is used up.
    pub(crate) fn admitted(&mut self, caller: Option<NamedTenant<'_>>) -> Result<(), QuotaError> {
        self.receipt.admitted();
        let Some(tenant) = caller else { return Ok(()) };
        tenant.count_request(self.receipt.record().arrived, self.quota)
    }
}
