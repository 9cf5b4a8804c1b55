//! The tasks of a connection run in turns, whose processor time its requests are charged.

use std::pin::pin;

use gristmill_core::HostTime;
use hyper::rt::Executor;

/// Let each poll of the future be a turn.
pub(crate) async fn in_turns<F: Future>(host: HostTime, future: F) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|context| host.turn(|| future.as_mut().poll(context))).await
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
        tokio::spawn(in_turns(self.0.clone(), future));
    }
}
