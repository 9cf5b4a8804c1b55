//! The times of a batch. Plain data.

use std::time::Duration;

/// The times of a batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Copying the inputs together.
    pub input: Duration,
    /// The model's run alone.
    pub run: Duration,
    /// Taking the outputs apart.
    pub output: Duration,
}

impl Times {
    /// The sum of all times.
    pub fn total(&self) -> Duration {
        self.input + self.run + self.output
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.run += other.run;
        self.output += other.output;
    }
}
