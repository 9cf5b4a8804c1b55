//! The destinations of one tenant, and the requests that it has under way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{AddressRange, Destination, HeldBytes, Name, Rate, Scheme};
use http::{Request, Response};
use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use super::{OUTGOING_BYTES, OutgoingBody, OutgoingCall, OutgoingFault, OutgoingHttp};
use crate::host_work::HostWork;
use crate::meter::Meter;

/// The destinations to which a tenant's plugins may send requests.
pub struct TenantOutgoing {
    tenant: Name,
    client: Arc<dyn OutgoingHttp>,
    granted: Vec<Destination>,
    /// The permits of its requests under way, [`super::OUTGOING_AT_ONCE`].
    permits: Arc<Semaphore>,
    /// The rate of the CPU time of its plugins, which the work for its requests counts against.
    cpu: Arc<Rate>,
}

/// A request that may be sent.
pub struct Sending {
    outgoing: Arc<TenantOutgoing>,
    scheme: Scheme,
    host: String,
    port: u16,
    addresses: Vec<AddressRange>,
    deadline: Instant,
    /// A hold of the tenant's budget, of no bytes yet.
    held: HeldBytes,
    /// The meter of the plugin's call, if one sends it.
    meter: Option<Arc<Meter>>,
}

/// The times that a plugin gives a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timeouts {
    /// The time for making a connection.
    pub connect: Option<Duration>,
    /// The time until the answer's head.
    pub first_byte: Option<Duration>,
    /// The time between two parts of the answer.
    pub between_bytes: Option<Duration>,
}

impl TenantOutgoing {
    /// The destinations that the document of `tenant` grants. `permits` has those of its requests
    /// under way, [`super::OUTGOING_AT_ONCE`]. The work for them is charged as CPU time of `cpu`.
    pub fn new(
        tenant: Name,
        client: Arc<dyn OutgoingHttp>,
        granted: Vec<Destination>,
        permits: Arc<Semaphore>,
        cpu: Arc<Rate>,
    ) -> Self {
        Self { tenant, client, granted, permits, cpu }
    }

    /// A request to this host, in lower case, which ends at `deadline`. `held` counts against the
    /// tenant's budget, no bytes yet. None if it is not granted.
    pub fn sending(
        self: &Arc<Self>,
        (scheme, host, port): (Scheme, &str, u16),
        deadline: Instant,
        held: HeldBytes,
    ) -> Option<Sending> {
        let mut granted = self.granted.iter().filter(|granted| granted.is(scheme, host, port));
        let mut addresses = granted.next()?.addresses.clone();
        addresses.extend(granted.flat_map(|granted| &granted.addresses));
        let (outgoing, host) = (self.clone(), host.to_owned());
        Some(Sending { outgoing, scheme, host, port, addresses, deadline, held, meter: None })
    }
}

impl Sending {
    /// A plugin's call sends it, which pays for the work of the host's threads, too.
    pub(crate) fn of_call(self, meter: Arc<Meter>) -> Self {
        Self { meter: Some(meter), ..self }
    }

    /// Wait for a place among the tenant's requests, send this one, and wait for the answer's head.
    ///
    /// # Errors
    /// [`OutgoingFault`]
    pub async fn send(
        self,
        request: Request<OutgoingBody>,
        timeouts: Timeouts,
    ) -> Result<Response<OutgoingBody>, OutgoingFault> {
        let Self { outgoing, scheme, host, port, addresses, deadline, held, meter } = self;
        let permit = outgoing.permits.clone().acquire_owned();
        let Ok(Ok(permit)) = timeout_at(deadline.into(), permit).await else {
            return Err(OutgoingFault::TooMany);
        };
        held.try_add(OUTGOING_BYTES)?;
        let call = OutgoingCall {
            tenant: outgoing.tenant.clone(),
            scheme,
            host,
            port,
            addresses,
            deadline,
            connect_timeout: timeouts.connect,
            first_byte_timeout: timeouts.first_byte,
            between_bytes_timeout: timeouts.between_bytes,
            work: HostWork { rate: outgoing.cpu.clone(), meter },
            _permit: permit,
            _held: held,
        };
        outgoing.client.send(call, request).await
    }
}

#[cfg(test)]
mod tests;
