//! A timer of the kernel. Those of tokio are precise to a millisecond, which is longer than many
//! answers take.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// A timer.
pub(crate) struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    /// A timer. Call this on a runtime.
    pub(crate) fn new() -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)?;
        #[expect(deprecated, reason = "its successor is unsafe, but an owned descriptor is not")]
        AsyncFd::new(timer).map(Self)
    }

    /// Wait until this time, or a little less.
    pub(crate) async fn wait_until(&self, time: Instant) -> io::Result<()> {
        // At least a nanosecond, because 0 turns the timer off.
        let wait = time.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let it_value =
            Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let when = Itimerspec { it_interval, it_value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &when)?;
        self.0.readable().await?.clear_ready();
        Ok(())
    }
}
