//! How long the stages of a task take.

use std::time::Instant;

/// The stages of a task that have ended, in their order.
pub(crate) struct Stages {
    /// When the stage that runs began.
    began: Instant,
    /// The names of those that have ended, and their seconds.
    ended: Vec<(&'static str, f64)>,
}

impl Stages {
    /// The first stage begins.
    pub(crate) fn begin() -> Self {
        Self { began: Instant::now(), ended: Vec::new() }
    }

    /// The stage that runs has ended, and the next one begins.
    pub(crate) fn ended(&mut self, name: &'static str) {
        self.ended.push((name, self.began.elapsed().as_secs_f64()));
        self.began = Instant::now();
    }

    /// Print the seconds of each stage, and of all. A stage that failed has not ended.
    pub(crate) fn print(mut self) {
        if self.began.elapsed().as_secs() > 0 {
            self.ended("the stage that failed");
        }
        let all: f64 = self.ended.iter().map(|(_, seconds)| seconds).sum();
        for (name, seconds) in self.ended.iter().chain(&[("all", all)]) {
            println!("{seconds:6.0} s  {name}");
        }
    }
}
