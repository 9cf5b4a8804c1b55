//! One thread of the load: a runtime, on which each connection is a task with a loop of its own.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use crate::arrivals::{Pace, Random};
use crate::connection::{Connection, Failure};
use crate::load::{Load, LoadError};
use crate::measured::Tally;
use crate::schedule::Schedule;
use crate::score::{Counts, EndedRequest, Score};
use crate::timer::Timer;

/// How often a thread looks whether it has to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// The runtime and the open connections of one thread.
pub(crate) struct Worker {
    load: Arc<Load>,
    /// The thread's number.
    number: usize,
    runtime: Runtime,
    connections: Vec<Connection>,
}

/// What the tasks of a thread share.
struct ThreadShared {
    load: Arc<Load>,
    /// Free whenever it is locked: all tasks run on one thread.
    state: Mutex<WorkerState>,
    /// A request of the open loop waits for a connection, or none is due any more.
    due: Notify,
}

struct WorkerState {
    score: Score,
    random: Random,
    schedule: Option<Schedule>,
    /// For each connection, when the request that is under way should have been sent.
    under_way: Vec<Option<Instant>>,
}

/// What a free connection does.
enum Next {
    /// Send a request to the target with this number, which should have been sent at this time.
    Send(usize, Instant),
    Wait,
    End,
}

impl Worker {
    /// Open the connections of thread `number`, to the first target.
    pub(crate) fn open(load: &Arc<Load>, number: usize) -> Result<Self, LoadError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let connections = runtime.block_on(async {
            let mut connections = Vec::new();
            for _ in 0..load.connections_of(number) {
                let mut connection = Connection::default();
                if let Some(target) = load.targets.first() {
                    connection.open(target).await.map_err(LoadError::Connect)?;
                }
                connections.push(connection);
            }
            Ok::<_, LoadError>(connections)
        })?;
        Ok(Self { load: load.clone(), number, runtime, connections })
    }

    /// Make this thread's part of the load from `begin` on.
    pub(crate) fn run(self, counts: &Arc<Counts>, begin: Instant) -> Result<Tally, LoadError> {
        let Self { load, number, runtime, connections } = self;
        let state = Mutex::new(WorkerState {
            score: Score::new(&load, counts.clone(), begin),
            random: Random::new(number as u64),
            schedule: Schedule::new(&load, number, begin),
            under_way: vec![None; connections.len()],
        });
        let shared = Arc::new(ThreadShared { load, state, due: Notify::new() });
        runtime.block_on(shared.drive(connections))?;
        Ok(shared.state.lock().score.tally())
    }
}

impl ThreadShared {
    /// Send requests until nothing is left to send, or no answer is waited for any more.
    async fn drive(self: &Arc<Self>, connections: Vec<Connection>) -> Result<(), LoadError> {
        let mut tasks = JoinSet::new();
        for (number, connection) in connections.into_iter().enumerate() {
            tasks.spawn(self.clone().send_requests(number, connection));
        }
        let sending = async {
            self.dispatch().await?;
            while let Some(ended) = tasks.join_next().await {
                ended.map_err(|_| LoadError::Panicked)?;
            }
            Ok::<_, LoadError>(())
        };
        tokio::select! {
            ended = sending => ended?,
            () = self.over() => {}
        }
        self.state.lock().count_unanswered(Instant::now());
        Ok(())
    }

    /// Wait until the thread is to end, although requests are under way.
    async fn over(&self) {
        while !self.state.lock().score.is_over(Instant::now()) {
            sleep(LOOK_INTERVAL).await;
        }
    }

    /// Wait until no request is due any more. In an open loop, let each wait for a connection when
    /// its time comes.
    async fn dispatch(&self) -> io::Result<()> {
        let end = self.state.lock().score.end;
        tokio::select! {
            failed = self.follow_schedule() => return failed,
            () = sleep_until(end.into()) => {}
        }
        self.take_due();
        self.due.notify_waiters();
        Ok(())
    }

    /// Take each request of the open loop when its time has come. Ends only if it fails.
    async fn follow_schedule(&self) -> io::Result<()> {
        let Some(mut next) = self.take_due() else { return pending().await };
        let timer = Timer::new()?;
        loop {
            timer.wait_until(next).await?;
            next = self.take_due().unwrap_or(next);
        }
    }

    /// Let the requests of the open loop wait whose time has come, and wake a connection for each:
    /// the one that was used last, so that as few as possible are used. Returns when the next
    /// request is due; none of a closed loop.
    fn take_due(&self) -> Option<Instant> {
        let mut state = self.state.lock();
        let (count, next) = state.schedule.as_mut()?.take_due(Instant::now());
        (0..count).for_each(|_| self.due.notify_last());
        Some(next)
    }

    /// The requests of one connection, one after the other, until nothing is left to send.
    async fn send_requests(self: Arc<Self>, number: usize, mut connection: Connection) {
        let mut now = Instant::now();
        loop {
            let next = self.state.lock().next(&self.load, number, now);
            let (target, intended) = match next {
                Next::Send(target, intended) => (&self.load.targets[target], intended),
                Next::Wait => {
                    self.due.notified().await;
                    now = Instant::now();
                    continue;
                }
                Next::End => return,
            };
            let answer = connection.exchange(target, |_| {}).await;
            now = Instant::now();
            let is_refused = matches!(answer, Err(Failure::NoConnection(_)));
            self.state.lock().count(number, &EndedRequest { intended, status: answer.ok() }, now);
            // Otherwise failures without a pause would be most of what is measured.
            if is_refused && matches!(self.load.pace, Pace::Closed { .. }) {
                return;
            }
        }
    }
}

impl WorkerState {
    /// What connection `number` does now.
    fn next(&mut self, load: &Load, number: usize, now: Instant) -> Next {
        let is_end = now >= self.score.end;
        let intended = match &mut self.schedule {
            None => (!is_end).then_some(now),
            Some(schedule) => schedule.waiting.pop_front(),
        };
        let Some(intended) = intended else {
            return if is_end { Next::End } else { Next::Wait };
        };
        self.under_way[number] = Some(intended);
        Next::Send(load.choose(&mut self.random), intended)
    }

    fn count(&mut self, number: usize, ended: &EndedRequest, now: Instant) {
        self.under_way[number] = None;
        self.score.count(ended, now);
    }

    /// Count the requests whose answers have not come, with the time for which they have waited.
    fn count_unanswered(&mut self, now: Instant) {
        let waiting = self.schedule.iter_mut().flat_map(|schedule| schedule.waiting.drain(..));
        for intended in self.under_way.iter_mut().filter_map(Option::take).chain(waiting) {
            self.score.count(&EndedRequest { intended, status: None }, now);
        }
    }
}
