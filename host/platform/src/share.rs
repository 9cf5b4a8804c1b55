//! A thread's share of the processor.

use std::io;
use std::sync::Once;
use std::time::Duration;

/// A thread's share of the processor.
///
/// Two things decide it. Niceness says how much of a busy processor a thread gets. The slice says
/// how soon: since Linux 6.12 a thread that wakes up goes before a running thread whose slice is
/// longer; with equal slices it waits until the other thread's slice ends, which takes up to 4 ms
/// on a kernel with 250 ticks a second. Older kernels ignore the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Threads that serve requests: the process's own priority, without a wait after they wake up.
    Serving,
    /// Work that people wait for: the process's own priority, after threads that serve.
    Ordinary,
    /// Long work: a tenth of a serving thread's share.
    Long,
    /// Only what no other thread of the machine wants.
    Rest,
}

impl Share {
    /// Give this share to the calling thread, and to the threads and processes that it starts from
    /// now on.
    ///
    /// # Errors
    ///
    /// The kernel refuses, for example because a sandbox around the process forbids the call.
    pub fn apply(self) -> io::Result<()> {
        let priority = rustix::process::getpriority_process(None)?;
        let (policy, nice, slice) = match self {
            Self::Serving => (libc::SCHED_OTHER, priority, SHORT_SLICE),
            Self::Ordinary => (libc::SCHED_OTHER, priority, LONG_SLICE),
            Self::Long => (libc::SCHED_OTHER, priority.saturating_add(10).min(NICEST), LONG_SLICE),
            Self::Rest => (libc::SCHED_IDLE, priority, LONG_SLICE),
        };
        set(policy, nice, slice)
    }

    /// As [`apply`](Self::apply), for a thread that goes on also if the kernel refuses. The log
    /// says that once. `what` names the work of the thread.
    pub fn take(self, what: &str) {
        static TOLD: Once = Once::new();
        if let Err(error) = self.apply() {
            TOLD.call_once(|| {
                tracing::warn!(%error, "the kernel refuses a share of the processor to {what}");
            });
        }
    }
}

/// The lowest priority there is.
const NICEST: i32 = 19;

const SHORT_SLICE: Duration = Duration::from_micros(500);

/// The kernel's own default or longer.
const LONG_SLICE: Duration = Duration::from_millis(10);

#[allow(unsafe_code, reason = "libc has no safe way to it")]
fn set(policy: i32, nice: i32, slice: Duration) -> io::Result<()> {
    /// As of `sched_setattr(2)`, in its first form.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        /// The slice of an ordinary thread.
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: policy as u32,
        nice,
        runtime_ns: slice.as_nanos() as u64,
        ..Attributes::default()
    };
    // SAFETY: the kernel reads `size` bytes from a struct that is so long, and keeps no pointer to
    // it.
    let outcome = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &attributes, 0) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
