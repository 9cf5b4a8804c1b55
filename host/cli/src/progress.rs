//! The progress of something that takes long, on standard error. Nothing is shown if that is not a
//! terminal. What is shown disappears when the work ends.

use std::io::Read;
use std::time::Duration;

use indicatif::{BinaryBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

const BYTES: &str = "{msg} [{bar:30}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} to go";
const COUNT: &str = "{msg} [{bar:30}] {pos} of {len}";
const WAIT: &str = "{spinner} {msg}, {elapsed}";

/// The time between two images of a spinner.
const TICK: Duration = Duration::from_millis(200);

/// Progress that is shown until this is dropped.
pub struct Progress(ProgressBar);

impl Progress {
    /// Of so many bytes.
    pub(crate) fn bytes(what: &str, total: u64) -> Self {
        Self::new(what, Some(total), BYTES)
    }

    /// Of so many things.
    pub fn count(what: &str, total: u64) -> Self {
        Self::new(what, Some(total), COUNT)
    }

    /// Of something whose length is not known.
    pub(crate) fn wait(what: &str) -> Self {
        let wait = Self::new(what, None, WAIT);
        wait.0.enable_steady_tick(TICK);
        wait
    }

    fn new(what: &str, total: Option<u64>, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(template);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(output::escaped(what).replace('\n', " "));
        Self(bar)
    }

    /// The reader; what is read of it is done.
    pub(crate) fn of_read<R: Read>(&self, reader: R) -> impl Read + use<R> {
        self.0.wrap_read(reader)
    }

    /// So much was done before, which says nothing about the speed.
    pub(crate) fn begin(&self, done: u64) {
        self.0.set_position(done);
        self.0.reset_eta();
    }

    /// So much is done.
    pub fn set(&self, done: u64) {
        self.0.set_position(done);
    }
}

/// A number of bytes in words.
pub(crate) fn bytes_text(bytes: u64) -> String {
    BinaryBytes(bytes).to_string()
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
