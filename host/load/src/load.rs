//! The load to make, and why it cannot be made.

use std::io;
use std::time::Duration;

use crate::arrivals::{Pace, Random};
use crate::target::LoadTarget;

/// The load to make.
#[derive(Clone, Debug)]
pub struct Load {
    /// The requests. Each is chosen at random by its weight.
    pub targets: Vec<LoadTarget>,
    /// When they are sent.
    pub pace: Pace,
    /// The threads; at least 1.
    pub threads: usize,
    /// The time before it measures.
    pub warm_up: Duration,
    /// How long it measures.
    pub duration: Duration,
    /// How long answers may take after the end. Requests without one by then count as failed.
    pub patience: Duration,
}

impl Load {
    /// The connections of thread `number`. The first threads have one more if they do not share
    /// equally.
    pub(crate) fn connections_of(&self, number: usize) -> usize {
        let (all, threads) = (self.pace.connections(), self.threads.max(1));
        all / threads + usize::from(number < all % threads)
    }

    /// The number of a target, by the weights.
    pub(crate) fn choose(&self, random: &mut Random) -> usize {
        if self.targets.len() == 1 {
            return 0;
        }
        let all: usize = self.targets.iter().map(|target| target.weight as usize).sum();
        let mut left = random.below(all);
        let fits = |target: &LoadTarget| match left.checked_sub(target.weight as usize) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        };
        self.targets.iter().position(fits).unwrap_or_default()
    }
}

/// Why no load can be made.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A thread, a timer or the like cannot be made.
    #[error("cannot make load")]
    System(#[from] io::Error),
    /// The server cannot be reached.
    #[error("cannot connect to the server")]
    Connect(#[source] io::Error),
    /// A thread has panicked.
    #[error("a thread of the load generator has panicked")]
    Panicked,
}
