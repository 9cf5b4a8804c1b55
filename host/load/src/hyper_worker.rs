//! One thread that sends gRPC and TLS requests with hyper. Each connection is a loop of its own, on
//! the thread's runtime.

use std::cell::RefCell;
use std::os::fd::AsFd;
use std::time::Instant;

use futures_util::future::join_all;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::time::sleep_until;

use crate::arrivals::Random;
use crate::hyper_connection::HyperConnection;
use crate::load::{Load, LoadError};
use crate::measured::Tally;
use crate::open_loop::OpenLoop;
use crate::score::{Counts, Ended, Score, Status};
use crate::target::Target;

/// The runtime and the open connections of one thread.
pub(crate) struct OpenedByHyper {
    /// The thread's number.
    number: usize,
    runtime: Runtime,
    connections: Vec<HyperConnection>,
}

/// What the connections of a thread share.
struct Shared<'a> {
    load: &'a Load,
    score: RefCell<Score<'a>>,
    random: RefCell<Random>,
    open: Option<RefCell<OpenLoop>>,
    /// A request of the open loop waits.
    due: Notify,
}

impl OpenedByHyper {
    /// Open the connections of thread `number`, to the first target.
    pub(crate) fn open(load: &Load, number: usize) -> Result<Self, LoadError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let connections = runtime.block_on(async {
            let mut connections = Vec::new();
            for _ in 0..load.connections_of(number) {
                let mut connection = HyperConnection::default();
                if let Some(target) = load.targets.first() {
                    connection.open(target).await.map_err(LoadError::Connect)?;
                }
                connections.push(connection);
            }
            Ok::<_, LoadError>(connections)
        })?;
        Ok(Self { number, runtime, connections })
    }

    /// Make this thread's part of the load from `begin` on.
    pub(crate) fn run(
        self,
        load: &Load,
        counts: &Counts,
        begin: Instant,
    ) -> Result<Tally, LoadError> {
        let Self { number, runtime, mut connections } = self;
        let shared = Shared {
            load,
            score: RefCell::new(Score::new(load, counts, begin)),
            random: RefCell::new(Random::new(number as u64)),
            open: OpenLoop::new(load, number, begin)?.map(RefCell::new),
            due: Notify::new(),
        };
        let result = runtime.block_on(shared.drive(&mut connections));
        result.map(|()| shared.score.into_inner().into_tally())
    }
}

/// How a request ended.
enum Exchange {
    Answer(Status),
    NoAnswer,
    NoConnection,
}

async fn exchange(connection: &mut HyperConnection, target: &Target) -> Exchange {
    if connection.open(target).await.is_err() {
        return Exchange::NoConnection;
    }
    match connection.exchange(target, |_| {}).await {
        Ok(status) => Exchange::Answer(status),
        Err(_) => Exchange::NoAnswer,
    }
}

impl Shared<'_> {
    async fn drive(&self, connections: &mut [HyperConnection]) -> Result<(), LoadError> {
        let loops = join_all(connections.iter_mut().map(|own| self.requests(own)));
        tokio::select! {
            _ = loops => {}
            failed = self.dispatch() => return failed,
        }
        // What no connection had time for.
        let now = Instant::now();
        self.take_due(now);
        let waiting =
            self.open.iter().flat_map(|open| std::mem::take(&mut open.borrow_mut().waiting));
        waiting.for_each(|intended| self.count(Ended { intended, status: None }, now));
        Ok(())
    }

    /// Let the requests of the open loop wait for a connection when their time comes. It ends only
    /// if it fails.
    async fn dispatch(&self) -> Result<(), LoadError> {
        let Some(open) = &self.open else { return std::future::pending().await };
        let timer = open.borrow().as_fd().try_clone_to_owned()?;
        #[expect(deprecated, reason = "its successor is unsafe, but an owned descriptor is not")]
        let timer = AsyncFd::new(timer)?;
        open.borrow().arm()?;
        loop {
            timer.readable().await?.clear_ready();
            self.take_due(Instant::now());
            open.borrow().arm()?;
        }
    }

    /// Let the requests of the open loop wait whose time has come, and wake a connection for each.
    fn take_due(&self, now: Instant) {
        let Some(open) = &self.open else { return };
        let count = open.borrow_mut().take_due(now);
        (0..count).for_each(|_| self.due.notify_one());
    }

    /// The requests of one connection, one after the other, until nothing is left to send.
    async fn requests(&self, connection: &mut HyperConnection) {
        let give_up = self.score.borrow().give_up;
        while let Some(intended) = self.next().await {
            let target = self.load.choose(&mut self.random.borrow_mut());
            let target = &self.load.targets[target];
            let patience = sleep_until(give_up.into());
            let ended = tokio::select! {
                ended = exchange(connection, target) => ended,
                () = patience => Exchange::NoAnswer,
            };
            let status = match ended {
                Exchange::Answer(status) => Some(status),
                Exchange::NoAnswer | Exchange::NoConnection => None,
            };
            if status.is_none() {
                connection.close();
            }
            self.count(Ended { intended, status }, Instant::now());
            // Otherwise failures without a pause would be most of what is measured.
            if matches!(ended, Exchange::NoConnection) && self.open.is_none() {
                return;
            }
        }
    }

    /// When the next request of a free connection should have been sent; none at the end.
    async fn next(&self) -> Option<Instant> {
        loop {
            let now = Instant::now();
            let (is_over, end) = {
                let score = self.score.borrow();
                (score.is_over(now), score.end)
            };
            let Some(open) = &self.open else { return (now < end && !is_over).then_some(now) };
            if is_over {
                return None;
            }
            self.take_due(now);
            let waiting = open.borrow_mut().waiting.pop_front();
            if waiting.is_some() || now >= end {
                return waiting;
            }
            tokio::select! {
                () = self.due.notified() => {}
                () = sleep_until(end.into()) => {}
            }
        }
    }

    fn count(&self, ended: Ended, now: Instant) {
        self.score.borrow_mut().count(&ended, now);
    }
}
