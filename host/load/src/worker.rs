//! One thread of the load: many connections, driven by the events on them.

use std::collections::VecDeque;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use crate::arrivals::{Pace, Random, Times};
use crate::connection::{Connection, Ended};
use crate::load::{Load, LoadError};
use crate::measured::Tally;
use crate::target::Target;

/// The most bytes that one call of the system reads.
const READ_BYTES: usize = 256 << 10;

/// The most events of one look.
const EVENTS_MAX: usize = 256;

/// The longest wait for an event, after which the time is looked at.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The event of the timer. Connections have their numbers.
const TIMER: u64 = u64::MAX;

/// What all threads count for the reports, and whether they stop early.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) answered: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) stops: AtomicBool,
}

/// The open connections of one thread, and what tells of events on them.
pub(crate) struct Opened {
    /// The thread's number.
    number: usize,
    epoll: OwnedFd,
    connections: Vec<Connection>,
}

/// One thread.
pub(crate) struct Worker<'a> {
    load: &'a Load,
    counts: &'a Counts,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    /// Connections without a request.
    free: Vec<usize>,
    open: Option<Open>,
    random: Random,
    weights: u32,
    measures: (Instant, Instant),
    tally: Tally,
    buffer: Vec<u8>,
}

/// The requests of an open loop.
struct Open {
    times: Times,
    timer: OwnedFd,
    begin: Instant,
    next: Instant,
    /// Requests that wait for a connection, by the time at which they should have been sent.
    waiting: VecDeque<Instant>,
}

impl Opened {
    /// Open the connections of thread `number`, to the first target.
    pub(crate) fn open(load: &Load, number: usize) -> Result<Self, LoadError> {
        // The first threads have one connection more if they do not share equally.
        let (all, threads) = (load.pace.connections(), load.threads.max(1));
        let count = all / threads + usize::from(number < all % threads);
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let mut connections = Vec::with_capacity(count);
        for own in 0..count {
            let mut connection = Connection::new();
            if let Some(target) = load.targets.first() {
                let opened = connection.open(target).map_err(LoadError::Connect)?;
                if let Some(stream) = opened {
                    watch(&epoll, stream, own)?;
                }
            }
            connections.push(connection);
        }
        Ok(Self { number, epoll, connections })
    }
}

/// Let events on the stream tell the number of its connection.
fn watch(epoll: &OwnedFd, stream: &TcpStream, number: usize) -> io::Result<()> {
    let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
    Ok(epoll::add(epoll, stream.as_fd(), EventData::new_u64(number as u64), flags)?)
}

impl<'a> Worker<'a> {
    /// A thread that makes its part of the load from `begin` on.
    pub(crate) fn new(
        load: &'a Load,
        counts: &'a Counts,
        opened: Opened,
        begin: Instant,
    ) -> Result<Self, LoadError> {
        let Opened { number, epoll, connections } = opened;
        let open = match load.pace {
            Pace::Closed { .. } => None,
            Pace::Open { rate, arrivals, .. } => {
                let own = rate / load.threads.max(1) as f64;
                let mut times = Times::new(own, arrivals, number as u64 + 1);
                let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)?;
                let flags = EventFlags::IN | EventFlags::ET;
                epoll::add(&epoll, &timer, EventData::new_u64(TIMER), flags)?;
                let next = begin + times.next();
                Some(Open { times, timer, begin, next, waiting: VecDeque::new() })
            }
        };
        Ok(Self {
            load,
            counts,
            epoll,
            free: (0..connections.len()).rev().collect(),
            connections,
            open,
            random: Random::new(number as u64),
            weights: load.targets.iter().map(|target| target.weight).sum(),
            measures: (begin + load.warm_up, begin + load.warm_up + load.duration),
            tally: Tally::new(load.duration),
            buffer: vec![0; READ_BYTES],
        })
    }

    pub(crate) fn run(mut self) -> Result<Tally, LoadError> {
        let result = self.drive();
        if result.is_err() {
            // The other threads end, too.
            self.counts.stops.store(true, Relaxed);
        }
        self.tally.used(cpu_time());
        result.map(|()| self.tally)
    }

    fn drive(&mut self) -> Result<(), LoadError> {
        let (_, end) = self.measures;
        match &self.open {
            None => {
                for connection in std::mem::take(&mut self.free) {
                    self.begin_or_count(connection, Instant::now());
                }
            }
            Some(_) => self.arm()?,
        }
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&WAIT))
            {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                match event.data.u64() {
                    TIMER => {}
                    connection => self.look_at(connection as usize),
                }
            }
            let now = Instant::now();
            if self.open.is_some() {
                self.send_due(now)?;
            }
            let is_idle = self.connections.iter().all(Connection::is_free);
            let is_over = now >= end + self.load.patience || now >= end && is_idle;
            if is_over || self.counts.stops.load(Relaxed) {
                self.count_unanswered(now);
                return Ok(());
            }
        }
    }

    /// Something has come on a connection, or it takes more.
    fn look_at(&mut self, connection: usize) {
        let Some(ended) = self.connections[connection].drive(&self.load.targets, &mut self.buffer)
        else {
            return;
        };
        let (_, end) = self.measures;
        if self.connections[connection].was_closed_idle(&ended) {
            // A server may close connections that are not used.
            return self.begin_or_count(connection, ended.intended);
        }
        self.connections[connection].forget();
        let now = Instant::now();
        self.count(&ended, now);
        let next = match &mut self.open {
            None if now < end => Some(now),
            None => None,
            Some(open) => open.waiting.pop_front(),
        };
        match next {
            Some(intended) => self.begin_or_count(connection, intended),
            None => self.free.push(connection),
        }
    }

    /// Send the requests of an open loop whose time has come, and set the timer.
    fn send_due(&mut self, now: Instant) -> Result<(), LoadError> {
        let (_, end) = self.measures;
        let mut is_changed = false;
        while let Some(open) = &mut self.open
            && open.next <= now
            && open.next < end
        {
            let intended = open.next;
            open.next = open.begin + open.times.next();
            is_changed = true;
            match self.free.pop() {
                Some(connection) => self.begin_or_count(connection, intended),
                None => open.waiting.push_back(intended),
            }
        }
        if is_changed { self.arm() } else { Ok(()) }
    }

    /// Let the timer end at the time of the next request.
    fn arm(&self) -> Result<(), LoadError> {
        let Some(open) = &self.open else { return Ok(()) };
        // At least a nanosecond, because 0 turns the timer off.
        let wait = open.next.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let it_value =
            Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let when = Itimerspec { it_interval, it_value };
        timerfd_settime(&open.timer, TimerfdTimerFlags::empty(), &when)?;
        Ok(())
    }

    /// Begin a request, or count it as failed if its connection cannot be opened.
    fn begin_or_count(&mut self, connection: usize, intended: Instant) {
        if self.begin(connection, intended).is_err() {
            self.connections[connection].abandon();
            self.count(&Ended { intended, status: None }, Instant::now());
            self.free.push(connection);
        }
    }

    fn begin(&mut self, connection: usize, intended: Instant) -> io::Result<()> {
        let target = self.choose();
        let own = &mut self.connections[connection];
        if let Some(stream) = own.begin(&self.load.targets, target, intended)? {
            watch(&self.epoll, stream, connection)?;
        }
        // The request goes out at once; its answer is an event.
        match own.send(&self.load.targets) {
            // The server may have closed a connection that was not used; that is an event, too.
            Err(error) if is_closed(&error) => Ok(()),
            sent => sent,
        }
    }

    /// A target, by the weights.
    fn choose(&mut self) -> usize {
        if self.load.targets.len() == 1 {
            return 0;
        }
        let mut left = self.random.below(self.weights as usize) as u32;
        let fits = |target: &Target| match left.checked_sub(target.weight) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        };
        self.load.targets.iter().position(fits).unwrap_or_default()
    }

    fn count(&mut self, ended: &Ended, now: Instant) {
        let (from, end) = self.measures;
        let took = now.saturating_duration_since(ended.intended);
        self.counts.answered.fetch_add(u64::from(ended.status.is_some()), Relaxed);
        let is_ok = ended.status.is_some_and(|status| (200..300).contains(&status));
        if !is_ok {
            self.counts.failed.fetch_add(1, Relaxed);
        }
        if ended.intended >= from && ended.intended < end {
            self.tally.time(took);
            if !is_ok {
                let what = ended.status.map(|status| status.to_string());
                self.tally.error(what.unwrap_or_else(|| "no answer".to_owned()));
            }
        }
        if ended.status.is_some() && now >= from && now < end {
            self.tally.answer(Some((now - from).as_secs() as usize), took);
        }
    }

    /// Count the requests whose answers have not come, with the time for which they have waited.
    fn count_unanswered(&mut self, now: Instant) {
        let under_way = self.connections.iter().filter_map(Connection::intended);
        let waiting = self.open.iter().flat_map(|open| open.waiting.iter().copied());
        let all: Vec<_> = under_way.chain(waiting).collect();
        for intended in all {
            self.count(&Ended { intended, status: None }, now);
        }
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// The processor time of the calling thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
