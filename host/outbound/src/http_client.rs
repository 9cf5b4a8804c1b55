//! The client of services over HTTP/1.1, for the requests of plugins.
//!
//! A request travels over a connection of its tenant to this scheme, host and port, which nothing
//! else shares. It is made to an address that was checked, and no name is looked up again between
//! the check and the connection. Redirects are answers as any other: the plugin asks again, and
//! that request is checked again.
//!
//! Each request is one task on the thread `services`. It ends at its deadline, or when its plugin
//! has dropped it or its answer. The task owns the connection meanwhile.

mod connections;
mod connector;
mod exchange;
mod names;
mod request_body;

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use gristmill_core::Name;
use gristmill_sandbox::{OutgoingBody, OutgoingCall, OutgoingFault, OutgoingHttp};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use self::connections::Connections;
use self::connector::Connector;
use self::exchange::{BodyEvent, Exchange, Frames, Way, exchange};
use self::names::{Names, SystemNames};
use crate::thread::Thread;

/// The interval at which idle connections are looked at.
const IDLE_LOOK: Duration = Duration::from_secs(10);

/// Sends the requests of plugins.
pub struct HttpClient {
    tenants: Arc<Tenants>,
    connector: Arc<Connector>,
    thread: Thread,
}

/// The connections of each tenant.
type Tenants = Mutex<HashMap<Name, Arc<Connections>>>;

/// A task on the thread, which ends when this is dropped.
struct Task(JoinHandle<()>);

/// The body of an answer.
struct AnswerBody {
    frames: Frames,
    has_ended: bool,
    _task: Task,
}

impl HttpClient {
    /// A client, with its thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn new() -> io::Result<Self> {
        Self::knowing(Arc::new(SystemNames))
    }

    fn knowing(names: Arc<dyn Names>) -> io::Result<Self> {
        let thread = Thread::start("services")?;
        let tenants = Arc::<Tenants>::default();
        // It ends with the thread.
        drop(thread.spawn(drop_idle(tenants.clone())));
        Ok(Self { tenants, connector: Arc::new(Connector::new(names)), thread })
    }
}

/// Drop connections that are idle, now and then.
async fn drop_idle(tenants: Arc<Tenants>) {
    loop {
        sleep(IDLE_LOOK).await;
        let now = Instant::now();
        tenants.lock().retain(|_, connections| {
            let has_some = connections.drop_idle(now);
            has_some || Arc::strong_count(connections) > 1
        });
    }
}

#[async_trait]
impl OutgoingHttp for HttpClient {
    async fn send(
        &self,
        call: OutgoingCall,
        request: Request<OutgoingBody>,
    ) -> Result<Response<OutgoingBody>, OutgoingFault> {
        let connections = self.tenants.lock().entry(call.tenant.clone()).or_default().clone();
        let (answer, answered) = oneshot::channel();
        let way = Way { connections, connector: self.connector.clone() };
        let task = Task(self.thread.spawn(exchange(Exchange { way, call, request }, answer)));
        // Without an answer the thread has ended.
        let response = answered.await.unwrap_or(Err(OutgoingFault::Unavailable))?;
        Ok(response
            .map(|frames| AnswerBody { frames, has_ended: false, _task: task }.boxed_unsync()))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = OutgoingFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, OutgoingFault>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let part = ready!(self.frames.poll_recv(task));
        // A task that ends without a word has left parts out.
        let part = part.unwrap_or(BodyEvent::Fault(OutgoingFault::Ended));
        self.has_ended = !matches!(part, BodyEvent::Frame(_));
        Poll::Ready(match part {
            BodyEvent::Frame(frame) => Some(Ok(frame)),
            BodyEvent::Fault(fault) => Some(Err(fault)),
            BodyEvent::End => None,
        })
    }
}

#[cfg(test)]
mod tests;
