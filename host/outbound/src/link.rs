//! The connection of one tenant, or of the operator, to a server, which its calls share, with many
//! of them under way.
//!
//! It is made at the first call, and again after it failed. Making one takes its own time: a call
//! that cannot wait so long fails, and a later one finds the connection. `breaker` bounds how often
//! that is tried.
//!
//! A connection that the server has closed is not used again: its end is known at once, also while
//! no call is under way, so that the next call, a change too, gets a new one.
//!
//! Invariants:
//! - after an answer that cannot be read, no call that is under way on the same connection takes
//!   its own for right, and the connection is not used again: answers may belong to other calls;
//! - a connection that gives no answers for a while is not used again, however short the deadlines
//!   of its calls are. It and what its commands keep are given back then, also if no further call
//!   comes: they may be what further calls wait for.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use gristmill_core::Name;
use gristmill_sandbox::StoreCall;
use parking_lot::Mutex;
use redis::{ErrorKind, Pipeline, RedisError, RedisResult, Value};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{self, sleep_until, timeout_at};

use crate::answers::Refusal;
use crate::breaker::Breaker;
use crate::endpoint::{Endpoint, Made};
use crate::stream::Flow;

/// How long a connection may give no answers at least, if its bucket's timeout is shorter.
const SILENCE_MIN: Duration = Duration::from_secs(1);

/// Why a call got no answer.
#[derive(Clone, Debug)]
pub(crate) enum LinkError {
    /// Calls fail at once, for so long.
    Paused(Duration),
    /// There was no answer in time.
    TooLate,
    /// The answer is not one to this command.
    Garbage,
    /// The server refuses the command.
    Refused(Refusal),
    /// The connection cannot be made, or it failed.
    Broken(RedisError),
    /// No server of the cluster has the key.
    NoServer,
    /// The keys of the cluster are elsewhere than at an earlier page of them.
    KeysMoved,
}

/// Commands that are sent together.
pub(crate) struct Commands {
    pub(crate) pipeline: Pipeline,
    /// Whether they change nothing, so that they can be sent again.
    pub(crate) only_read: bool,
    /// The permit and the memory of the call. The commands keep both until they are answered, or
    /// the connection is dropped.
    pub(crate) call: Option<Arc<StoreCall>>,
}

/// When a call ends at the latest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until {
    pub(crate) at: Instant,
    /// The time that the server may take.
    pub(crate) timeout: Duration,
    /// Whether the server had all of that time. If not, a late answer says nothing about the
    /// server.
    pub(crate) is_whole: bool,
}

impl Until {
    /// How long a connection may give no answers.
    fn silence_max(&self) -> Duration {
        self.timeout.max(SILENCE_MIN)
    }
}

/// A connection that is being made, or was made.
type Connecting = Shared<BoxFuture<'static, RedisResult<Made>>>;

/// A tenant's connection to one server, or the operator's.
pub(crate) struct Link {
    endpoint: Arc<Endpoint>,
    /// None for the operator.
    owner: Option<Name>,
    breaker: Breaker,
    current: Mutex<Current>,
}

struct Current {
    connection: Option<Arc<Connection>>,
    last_used: Instant,
}

/// One connection.
struct Connection {
    connecting: Connecting,
    flow: Arc<Flow>,
    /// Whether it gave an answer that cannot be read.
    is_poisoned: AtomicBool,
    last_answer: Mutex<Option<time::Instant>>,
    /// Whether this connection is used no more. Calls stop waiting for answers then.
    is_ended: watch::Sender<bool>,
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(connection) = &self.current.get_mut().connection {
            connection.end();
        }
    }
}

impl Link {
    /// A connection to a server, which is not made yet.
    pub(crate) fn new(endpoint: Arc<Endpoint>, owner: Option<Name>) -> Self {
        let current = Current { connection: None, last_used: Instant::now() };
        let (breaker, current) = (Breaker::default(), Mutex::new(current));
        Self { endpoint, owner, breaker, current }
    }

    /// When a call last took the connection.
    pub(crate) fn last_used(&self) -> Instant {
        self.current.lock().last_used
    }

    /// Send commands together, and read their answers with `read`, which gives none for those that
    /// cannot be. This is called on the runtime on which the connection lives.
    pub(crate) async fn ask<T>(
        self: &Arc<Self>,
        commands: &Arc<Commands>,
        until: Until,
        read: impl FnOnce(Vec<Value>) -> Option<T>,
    ) -> Result<T, LinkError> {
        self.breaker.admit(Instant::now()).map_err(LinkError::Paused)?;
        if !commands.only_read {
            // The thread looks at its sockets before this goes on. So a change is not sent over a
            // connection that the server has closed before.
            yield_now().await;
        }
        let mut connection = self.connection();
        let was_made = connection.is_made();
        let mut answer = connection.ask(commands, until, self).await;
        if was_made && commands.only_read && matches!(answer, Err(LinkError::Broken(_))) {
            // What is between both may have lost it while nobody used it.
            self.drop_connection(&connection);
            connection = self.connection();
            answer = connection.ask(commands, until, self).await;
        }
        let answer = match answer.and_then(|answer| read(answer).ok_or(LinkError::Garbage)) {
            Ok(_) | Err(LinkError::Refused(_)) if connection.is_poisoned() => {
                Err(LinkError::Garbage)
            }
            answer => answer,
        };
        self.note(&connection, answer.as_ref().err(), until);
        answer
    }

    /// The connection. It is made if there is none.
    fn connection(&self) -> Arc<Connection> {
        let mut current = self.current.lock();
        current.last_used = Instant::now();
        if let Some(connection) =
            current.connection.as_ref().filter(|open_connection| open_connection.is_usable())
        {
            return connection.clone();
        }
        let (endpoint, flow) = (self.endpoint.clone(), Arc::<Flow>::default());
        let flow_of_stream = flow.clone();
        let making = async move { endpoint.connect(&flow_of_stream).await };
        // A panic would stay in the shared future, and end each call that waits for it.
        let making = AssertUnwindSafe(making).catch_unwind().map(|made| {
            let panicked = (ErrorKind::Client, "the client panicked while it connected");
            made.unwrap_or_else(|_| Err(RedisError::from(panicked)))
        });
        let connection = Arc::new(Connection::new(making.boxed().shared(), flow));
        // It is made also if the call that needs it cannot wait so long. It ends by its timeout.
        drop(tokio::spawn(connection.connecting.clone().map(drop)));
        current.connection = Some(connection.clone());
        connection
    }

    /// Use this connection no more. Returns whether it was the one in use.
    fn drop_connection(&self, connection: &Arc<Connection>) -> bool {
        connection.end();
        let mut current = self.current.lock();
        current
            .connection
            .take_if(|open_connection| Arc::ptr_eq(open_connection, connection))
            .is_some()
    }

    /// Use this connection no more, which was silent for so long.
    fn drop_silent(&self, connection: &Arc<Connection>, silent: Duration) {
        if self.drop_connection(connection) {
            let (server, tenant) =
                (self.endpoint.url.as_str(), self.owner.as_ref().map(Name::as_str));
            let silent_ms = silent.as_millis();
            tracing::warn!(server, tenant, silent_ms, "a silent connection is dropped");
        }
    }

    /// Note the outcome of a call.
    fn note(&self, connection: &Arc<Connection>, error: Option<&LinkError>, until: Until) {
        let (server, tenant) = (self.endpoint.url.as_str(), self.owner.as_ref().map(Name::as_str));
        let error = match error {
            Some(error) if !matches!(error, LinkError::Refused(_)) => error,
            _ => {
                connection.answered();
                if self.breaker.succeeded() {
                    tracing::info!(server, tenant, "a store answers again");
                }
                return;
            }
        };
        match error {
            LinkError::TooLate if !until.is_whole => return,
            LinkError::TooLate => {}
            LinkError::Garbage => {
                connection.is_poisoned.store(true, Ordering::Relaxed);
                self.drop_connection(connection);
            }
            _ => {
                self.drop_connection(connection);
            }
        }
        if self.breaker.failed(Instant::now()) {
            let error = reason(error);
            tracing::warn!(server, tenant, error, "a store does not answer");
        }
    }
}

impl Connection {
    fn new(connecting: Connecting, flow: Arc<Flow>) -> Self {
        let (is_poisoned, last_answer) = (AtomicBool::new(false), Mutex::default());
        Self { connecting, flow, is_poisoned, last_answer, is_ended: watch::Sender::new(false) }
    }

    fn is_made(&self) -> bool {
        matches!(self.connecting.peek(), Some(Ok(_)))
    }

    /// Whether it can be used, or is being made.
    fn is_usable(&self) -> bool {
        match self.connecting.peek() {
            Some(made) => made.is_ok() && !self.flow.is_closed(),
            None => true,
        }
    }

    fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::Relaxed)
    }

    fn end(&self) {
        self.is_ended.send_replace(true);
    }

    fn answered(&self) {
        self.flow.answered();
        *self.last_answer.lock() = Some(time::Instant::now());
    }

    /// Wait until the connection gives no answers for too long, beginning with the commands that
    /// are sent now. Returns for how long. That is not before their call has ended.
    async fn silence(&self, until: Until) -> Duration {
        let mut since = time::Instant::now();
        loop {
            sleep_until((since + until.silence_max()).max(until.at.into())).await;
            let last_answer = *self.last_answer.lock();
            match last_answer {
                Some(at) if at > since => since = at,
                _ => return since.elapsed(),
            }
        }
    }

    /// The answers to these commands. If they come too late, the commands and what counts for them
    /// stay until the answers are here, or the connection is silent for too long.
    async fn ask(
        self: &Arc<Self>,
        commands: &Arc<Commands>,
        until: Until,
        link: &Arc<Link>,
    ) -> Result<Vec<Value>, LinkError> {
        let (connection, commands, link) = (self.clone(), commands.clone(), Arc::downgrade(link));
        let asking = tokio::spawn(async move {
            let mut is_ended = connection.is_ended.subscribe();
            let answer = tokio::select! {
                answer = connection.send(&commands.pipeline, until, &link) => answer,
                _ = is_ended.wait_for(|is_ended| *is_ended) => Err(LinkError::TooLate),
            };
            if let Some(call) = &commands.call {
                call.charge(connection.flow.take_work());
            }
            answer
        });
        match timeout_at(until.at.into(), asking).await {
            Ok(Ok(answer)) => answer,
            // The client panicked.
            Ok(Err(_)) => Err(LinkError::Garbage),
            Err(_) => Err(LinkError::TooLate),
        }
    }

    async fn send(
        self: &Arc<Self>,
        commands: &Pipeline,
        until: Until,
        link: &Weak<Link>,
    ) -> Result<Vec<Value>, LinkError> {
        let mut made = self.connecting.clone().await.map_err(LinkError::Broken)?;
        // A connection that is being made may take longer than a call.
        if Instant::now() >= until.at {
            return Err(LinkError::TooLate);
        }
        let answer = tokio::select! {
            biased;
            answer = commands.query_async::<Vec<Value>>(&mut made.connection) => answer,
            silent = self.silence(until) => {
                if let Some(link) = link.upgrade() {
                    link.drop_silent(self, silent);
                }
                return Err(LinkError::TooLate);
            }
        };
        let answer = answer.map_err(|error| match Refusal::of(&error) {
            Some(refusal) => LinkError::Refused(refusal),
            None => LinkError::Broken(error),
        });
        if matches!(answer, Ok(_) | Err(LinkError::Refused(_))) {
            self.answered();
        }
        answer
    }
}

fn reason(error: &LinkError) -> String {
    match error {
        LinkError::Broken(error) => error.to_string(),
        LinkError::Refused(refusal) => refusal.to_string(),
        LinkError::TooLate => "no answer in time".to_owned(),
        LinkError::Garbage => "the answer is not one to the command".to_owned(),
        LinkError::Paused(_) => "it failed before".to_owned(),
        LinkError::NoServer => "no server of the cluster has the key".to_owned(),
        LinkError::KeysMoved => "keys of the cluster have moved".to_owned(),
    }
}

#[cfg(test)]
mod tests;
