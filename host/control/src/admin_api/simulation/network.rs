//! What lies between a server and the store: calls take their time, and some fail.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gristmill_store::simulation::{Call, CallKind, Fate, Fault, Network};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::dice::Dice;

/// The longest time of a call, in milliseconds, and that of a slow one. One of so many is slow.
const LONGEST_MS: u64 = 20;
const SLOW_MS: u64 = 3000;
const SLOW_ONE_IN: u64 = 32;

/// The longest time after which a call that failed is done all the same, in milliseconds.
pub(super) const LATE_MS: u64 = 5000;

/// The faults of a network are counted among this number of calls.
pub(super) const FAULTS_OF: u64 = 64;

/// The network of a server, from its start to its end.
#[derive(Debug)]
pub(super) struct FaultyNetwork {
    config: NetworkConfig,
    /// How often each call was made.
    calls: Mutex<HashMap<String, u64>>,
    is_up: AtomicBool,
}

#[derive(Clone, Debug)]
pub(super) struct NetworkConfig {
    pub(super) dice: Dice,
    /// The number of the server. Calls of different servers arrive at different times.
    pub(super) server: u64,
    /// The number of all servers.
    pub(super) servers: u64,
    /// So many of [`FAULTS_OF`] calls fail.
    pub(super) faults: u64,
    /// Times are counted from here.
    pub(super) begun: Instant,
    /// Whether no call fails any more.
    pub(super) is_calm: Arc<AtomicBool>,
}

impl FaultyNetwork {
    pub(super) fn new(config: NetworkConfig) -> Self {
        Self { config, calls: Mutex::default(), is_up: AtomicBool::new(true) }
    }

    /// End the server: it makes no more calls.
    pub(super) fn cut(&self) {
        self.is_up.store(false, Ordering::Relaxed);
    }

    /// The time from now to the next moment at which calls of this server may arrive, `after` or
    /// later.
    fn next_moment(&self, after: Duration) -> Duration {
        let NetworkConfig { server, servers, begun, .. } = self.config;
        let at = (begun.elapsed() + after).as_millis() as u64;
        let wait = (servers + server - at % servers) % servers;
        after + Duration::from_millis(wait)
    }
}

impl Network for FaultyNetwork {
    fn fate(&self, call: &Call) -> Fate {
        let name = format!("{:?} {}", call.kind, call.key);
        let times = {
            let mut calls = self.calls.lock();
            let times = calls.entry(name.clone()).or_default();
            *times += 1;
            *times
        };
        let dice = self.config.dice.of(&name, times);
        let is_calm = self.config.is_calm.load(Ordering::Relaxed);
        let is_slow = !is_calm && dice.of("slow", 0).below(SLOW_ONE_IN) == 0;
        let arrives_after = dice.of("arrives", 0).time(if is_slow { SLOW_MS } else { LONGEST_MS });
        let fails = !is_calm && dice.of("fails", 0).below(FAULTS_OF) < self.config.faults;
        Fate {
            arrives_after: self.next_moment(arrives_after),
            answered_after: dice.of("answered", 0).time(LONGEST_MS),
            fault: fails.then(|| fault(dice.of("fault", 0), call.kind)),
        }
    }

    fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }
}

fn fault(dice: Dice, kind: CallKind) -> Fault {
    match kind {
        // What it has done cannot be seen.
        CallKind::Get | CallKind::List => Fault::Lost,
        CallKind::Create | CallKind::Put | CallKind::Delete => match dice.below(4) {
            0 => Fault::Lost,
            1 => Fault::AnswerLost,
            2 => Fault::Late(dice.of("late", 0).time(LATE_MS)),
            _ => Fault::Repeated,
        },
    }
}
