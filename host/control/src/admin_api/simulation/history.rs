//! What the clients of a simulation were told and what its servers served, compared with the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{ClientError, ErrorCode};
use gristmill_state::{Desired, Head};

use crate::{Control, ControlError, Published};

/// The message of a release begins with this; the number of the change follows.
const MESSAGE: &str = "change ";

/// All that was seen from outside.
#[derive(Default)]
pub(super) struct History {
    /// The changes that were asked for, by their numbers.
    outcomes: BTreeMap<u64, Outcome>,
    /// The states that servers have served.
    served: Vec<Served>,
}

/// What the client of a change knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There was no answer, or one that leaves it open.
    Open,
    /// It is made by this release.
    Made(u64),
    /// It is not made, for this reason.
    Refused(String),
}

struct Served {
    server: u64,
    release: u64,
    desired: Arc<Desired>,
}

/// The log, from its first release to its last one.
struct Log {
    /// The releases that made each change.
    made: BTreeMap<u64, Vec<u64>>,
    /// The state after each release; the first is that before all.
    states: Vec<Desired>,
}

/// The message of the release that makes the change of this number.
pub(super) fn message(change: u64) -> String {
    format!("{MESSAGE}{change}")
}

impl History {
    /// Note that a change is asked for.
    pub(super) fn ask(&mut self, change: u64) {
        let before = self.outcomes.insert(change, Outcome::Open);
        assert!(before.is_none(), "change {change} is asked for twice");
    }

    /// Note the answer to a change.
    pub(super) fn answer(&mut self, change: u64, answer: &Result<Published, ControlError>) {
        let outcome = match answer {
            Ok(published) => Outcome::Made(published.release),
            Err(error) => match error.code() {
                ErrorCode::Unavailable => Outcome::Open,
                ErrorCode::Internal => panic!("change {change} found a fault: {error:?}"),
                _ => Outcome::Refused(error.to_string()),
            },
        };
        self.outcomes.insert(change, outcome);
    }

    /// Whether the client of the change knows that it is made.
    pub(super) fn is_made(&self, change: u64) -> bool {
        matches!(self.outcomes.get(&change), Some(Outcome::Made(_)))
    }

    /// Note what a server serves now. `before` is the release that it served last, in this life.
    /// Returns the release that it serves.
    pub(super) fn see(&mut self, server: u64, control: &Control, before: u64) -> u64 {
        let serving = control.serving();
        let release = serving.snapshot.release;
        assert!(release >= before, "server {server} went back from {before} to {release}");
        if release > before {
            self.served.push(Served { server, release, desired: serving.desired.clone() });
        }
        release
    }

    /// The outcomes of all changes.
    pub(super) fn outcomes(&self) -> &BTreeMap<u64, Outcome> {
        &self.outcomes
    }

    /// Check everything, after all servers have read the log to its end. `documents` are all that
    /// the log ever had.
    pub(super) fn check(&self, documents: &BTreeMap<u64, Bytes>, servers: &[Arc<Control>]) {
        let log = Log::read(documents);
        for (change, outcome) in &self.outcomes {
            let releases = log.made.get(change).map_or(&[][..], Vec::as_slice);
            let is_right = match outcome {
                Outcome::Made(release) => releases == [*release],
                Outcome::Refused(_) => releases.is_empty(),
                Outcome::Open => releases.len() <= 1,
            };
            assert!(is_right, "change {change}, {outcome:?}, is in the releases {releases:?}");
        }
        for change in log.made.keys() {
            assert!(self.outcomes.contains_key(change), "nobody asked for change {change}");
        }
        for Served { server, release, desired } in &self.served {
            let state = log.states.get(*release as usize);
            let is_same = state.is_some_and(|state| *state == **desired);
            assert!(is_same, "server {server} served another state than that of {release}");
        }
        let last = log.states.len() - 1;
        for (server, control) in servers.iter().enumerate() {
            let serving = control.serving();
            let release = serving.snapshot.release;
            assert_eq!(release, last as u64, "server {server} does not serve the last release");
            assert!(*serving.desired == log.states[last], "server {server} has another state");
            let (snapshot, desired) = (&serving.snapshot.tenants, &serving.desired.tenants);
            assert_eq!(snapshot.size(), desired.size(), "tenants of server {server}");
            let are_served = desired.keys().all(|tenant| snapshot.contains_key(tenant));
            assert!(are_served, "server {server} does not serve all tenants");
        }
    }
}

impl Log {
    /// Fails if there is a gap, or if a release does not follow the one before it.
    fn read(documents: &BTreeMap<u64, Bytes>) -> Self {
        let (mut head, mut desired) = (Head::default(), Desired::default());
        let mut log = Self { made: BTreeMap::new(), states: vec![desired.clone()] };
        for (number, document) in documents {
            assert_eq!(*number, head.number + 1, "the log has a gap");
            let (release, next) = head
                .read(document)
                .unwrap_or_else(|error| panic!("release {number} does not follow: {error}"));
            let applied = desired.apply(*number, &release.changes);
            applied.unwrap_or_else(|error| panic!("release {number} does not fit: {error}"));
            let message = release.note.message.unwrap_or_default();
            let change = message.strip_prefix(MESSAGE).and_then(|change| change.parse().ok());
            let change = change.unwrap_or_else(|| panic!("release {number} says {message:?}"));
            log.made.entry(change).or_default().push(*number);
            log.states.push(desired.clone());
            head = next;
        }
        log
    }
}
