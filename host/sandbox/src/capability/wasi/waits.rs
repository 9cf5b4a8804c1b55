//! Waiting for clocks and for other services.
//!
//! A call that waits keeps its instance, so only so many calls of one owner wait at a time, and
//! some more wait for their turn to wait. A handler that waits gives its permits back meanwhile, as
//! it does while it waits for models; its permit of a guest that rests bounds how many do.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use crate::account::Sleepers;
use crate::limiter::Limited;
use crate::meter::{Lookup, Meter};
use crate::pause::PausablePermits;

/// What a call needs to wait.
pub(in crate::capability) struct Waits {
    pub(super) sleepers: Arc<Sleepers>,
    /// The permits that it gives back meanwhile.
    pub(super) permits: Option<Arc<PausablePermits>>,
    pub(super) meter: Arc<Meter>,
    /// Whether the time counts as a wait for another service.
    pub(super) is_lookup: bool,
}

impl Waits {
    /// Wait until `event` is there. One that is there already needs nothing.
    pub(in crate::capability) async fn until<T>(
        self,
        event: impl Future<Output = T>,
    ) -> wasmtime::Result<T> {
        let mut event = pin!(event);
        let now = std::future::poll_fn(|task| {
            Poll::Ready(match event.as_mut().poll(task) {
                Poll::Ready(outcome) => Some(outcome),
                Poll::Pending => None,
            })
        });
        if let Some(outcome) = now.await {
            return Ok(outcome);
        }
        let _lookup = self.is_lookup.then(|| Lookup::begin(&self.meter));
        let Some(permits) = self.permits else {
            let _permit = self.sleepers.permit().await.map_err(Limited::Waiting)?;
            return Ok(event.await);
        };
        permits.pause();
        let outcome = event.await;
        permits.resume(&self.meter).await?;
        Ok(outcome)
    }
}
