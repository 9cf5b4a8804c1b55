//! The tasks of a connection run in turns, whose CPU time its requests are charged.

use std::pin::Pin;
use std::task::{Context, Poll};

use gristmill_core::HostTime;
use hyper::rt::Executor;
use pin_project_lite::pin_project;

pin_project! {
    /// Lets each poll of a future be a turn.
    pub struct InTurns<F> {
        host: HostTime,
        #[pin]
        future: F,
    }
}

impl<F> InTurns<F> {
    /// Polls are turns of the connection of `host`.
    pub fn new(host: HostTime, future: F) -> Self {
        Self { host, future }
    }
}

impl<F: Future> Future for InTurns<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let projected = self.project();
        projected.host.turn(|| projected.future.poll(context))
    }
}

/// Runs the tasks of one connection of HTTP/2.
#[derive(Clone)]
pub(crate) struct TurnExecutor(pub(crate) HostTime);

impl<F> Executor<F> for TurnExecutor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, future: F) {
        tokio::spawn(InTurns::new(self.0.clone(), future));
    }
}
