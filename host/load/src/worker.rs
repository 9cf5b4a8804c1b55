//! One thread of the load: many connections, driven by the events on them.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::Timespec;

use crate::arrivals::Random;
use crate::connection::Connection;
use crate::load::{Load, LoadError};
use crate::measured::Tally;
use crate::open_loop::OpenLoop;
use crate::score::{Counts, Ended, Score};

/// The most bytes that one call of the system reads.
const READ_BYTES: usize = 256 << 10;

/// The most events of one look.
const EVENTS_MAX: usize = 256;

/// The longest wait for an event, after which the time is looked at.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The event of the timer. Connections have their numbers.
const TIMER: u64 = u64::MAX;

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
    epoll: OwnedFd,
    connections: Vec<Connection>,
    /// Connections without a request.
    free: Vec<usize>,
    open: Option<OpenLoop>,
    random: Random,
    score: Score<'a>,
    buffer: Vec<u8>,
}

impl Opened {
    /// Open the connections of thread `number`, to the first target.
    pub(crate) fn open(load: &Load, number: usize) -> Result<Self, LoadError> {
        let count = load.connections_of(number);
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
        let open = OpenLoop::new(load, number, begin)?;
        if let Some(open) = &open {
            let flags = EventFlags::IN | EventFlags::ET;
            epoll::add(&epoll, open, EventData::new_u64(TIMER), flags)?;
        }
        Ok(Self {
            load,
            epoll,
            free: (0..connections.len()).rev().collect(),
            connections,
            open,
            random: Random::new(number as u64),
            score: Score::new(load, counts, begin),
            buffer: vec![0; READ_BYTES],
        })
    }

    pub(crate) fn run(mut self) -> Result<Tally, LoadError> {
        self.drive()?;
        Ok(self.score.into_tally())
    }

    fn drive(&mut self) -> Result<(), LoadError> {
        match &self.open {
            None => {
                for connection in std::mem::take(&mut self.free) {
                    self.begin_or_count(connection, Instant::now());
                }
            }
            Some(open) => open.arm()?,
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
            self.send_due(now)?;
            let is_idle = self.connections.iter().all(Connection::is_free);
            if self.score.is_over(now) || now >= self.score.end && is_idle {
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
        if self.connections[connection].was_closed_idle(&ended) {
            // A server may close connections that are not used.
            return self.begin_or_count(connection, ended.intended);
        }
        self.connections[connection].forget();
        let now = Instant::now();
        self.score.count(&ended, now);
        let next = match &mut self.open {
            None if now < self.score.end => Some(now),
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
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.take_due(now) > 0 {
            open.arm()?;
        }
        while let Some(open) = &mut self.open
            && !open.waiting.is_empty()
            && let Some(connection) = self.free.pop()
            && let Some(intended) = open.waiting.pop_front()
        {
            self.begin_or_count(connection, intended);
        }
        Ok(())
    }

    /// Begin a request, or count it as failed if its connection cannot be opened.
    fn begin_or_count(&mut self, connection: usize, intended: Instant) {
        if self.begin(connection, intended).is_err() {
            self.connections[connection].abandon();
            self.score.count(&Ended { intended, status: None }, Instant::now());
            self.free.push(connection);
        }
    }

    fn begin(&mut self, connection: usize, intended: Instant) -> io::Result<()> {
        let target = self.load.choose(&mut self.random);
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

    /// Count the requests whose answers have not come, with the time for which they have waited.
    fn count_unanswered(&mut self, now: Instant) {
        let under_way = self.connections.iter().filter_map(Connection::intended);
        let waiting = self.open.iter().flat_map(|open| open.waiting.iter().copied());
        let all: Vec<_> = under_way.chain(waiting).collect();
        for intended in all {
            self.score.count(&Ended { intended, status: None }, now);
        }
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
