//! Whether a call may send a request, over `wasi:http` or over the capability `http`.

use std::time::{Duration, Instant};

use super::state::CapabilityState;
use crate::call::CallState;
use crate::capability::http::target::OutgoingTarget;
use crate::outgoing::Sending;

/// Maximum requests of a call.
const REQUESTS_MAX: usize = 64;

/// Why a call may not send a request. The texts are for the plugin's author.
#[derive(Debug, thiserror::Error)]
pub(in crate::capability) enum Refused {
    #[error("a call sends at most {REQUESTS_MAX} requests")]
    TooMany,
    /// With the grant that would allow it.
    #[error("nothing grants it: an operator adds {0}")]
    NotGranted(String),
    #[error("a sample, a shadow or another trial sends only GET and HEAD")]
    Trial,
}

impl<S: AsMut<CapabilityState>> CallState<S> {
    /// What sends a request to this place, until the call's deadline, or after `time` if that is
    /// before. `changes` says whether its method may change something there. It counts as one of
    /// the call's requests.
    pub(in crate::capability) fn permitted(
        &mut self,
        target: &OutgoingTarget,
        changes: bool,
        time: Option<Duration>,
    ) -> Result<Sending, Refused> {
        let (held, meter) = (self.limiter.held().beside(), self.meter.clone());
        let deadline = self.context.as_ref().map(|context| context.deadline.instant());
        let http = self.states.as_mut().outgoing();
        if http.requests == REQUESTS_MAX {
            return Err(Refused::TooMany);
        }
        let end = time.and_then(|time| Instant::now().checked_add(time));
        let end = deadline.map(|deadline| end.map_or(deadline, |end| end.min(deadline)));
        let granted = http.granted.as_ref().zip(end).and_then(|((outgoing, is_trial), end)| {
            Some((outgoing.sending(target.parts(), end, held)?.of_call(meter), *is_trial))
        });
        match granted {
            None => Err(Refused::NotGranted(target.grant())),
            Some((_, true)) if changes => Err(Refused::Trial),
            Some((sending, _)) => {
                http.requests += 1;
                Ok(sending)
            }
        }
    }
}
