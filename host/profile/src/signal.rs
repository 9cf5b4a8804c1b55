//! Taking samples: a timer of the CPU time that the process uses, and the handler of its
//! signal.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::time::Duration;

use crate::objects::PAGE_BYTES;
use crate::ring::{Registers, Ring, STACK_BYTES, Turn};

/// Made at the first use, and never freed: a late signal may still look at it.
static RING: OnceLock<Ring> = OnceLock::new();

/// Whether the handler takes samples.
static SAMPLES: AtomicBool = AtomicBool::new(false);

/// The pages of a stack that are read, at most.
const PAGES: usize = STACK_BYTES / PAGE_BYTES + 1;

/// Sampling under way. It ends when this is dropped.
pub(crate) struct Sampling<'a> {
    ring: &'static Ring,
    turn: &'a mut Turn,
}

impl<'a> Sampling<'a> {
    /// Take so many samples in each second of CPU time.
    ///
    /// # Errors
    /// The system refuses the timer or the handler.
    #[expect(unsafe_code)]
    pub(crate) fn start(turn: &'a mut Turn, per_second: u32) -> io::Result<Self> {
        let ring = RING.get_or_init(Ring::new);
        // From here on, dropping it ends what has begun.
        let mut sampling = Self { ring, turn };
        // What a late signal left.
        sampling.read(|_| {});
        sampling.take_lost();
        SAMPLES.store(true, Release);
        // SAFETY: the handler keeps to what may be done in one, as its comment says. The structure
        // is plain data, for which zeros are valid.
        let handled = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            // Not on the alternative stack, which may have no more room than the system's own part
            // of a signal needs. A guest's stack has more than the guest may use.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(libc::SIGPROF, &action, std::ptr::null_mut())
        };
        if handled != 0 {
            return Err(io::Error::last_os_error());
        }
        set_timer(1_000_000 / i64::from(per_second.max(1)))?;
        Ok(sampling)
    }

    /// Read the samples that were taken since the last call.
    pub(crate) fn read(&mut self, take: impl FnMut(&crate::ring::Sample)) {
        self.ring.read(self.turn, take);
    }

    /// The samples that were lost.
    pub(crate) fn take_lost(&self) -> u64 {
        self.ring.take_lost()
    }
}

impl Drop for Sampling<'_> {
    fn drop(&mut self) {
        let _ = set_timer(0);
        SAMPLES.store(false, Release);
        // The handler stays: without it, a late signal would end the process.
        self.ring.read(self.turn, |_| {});
    }
}

/// The CPU time that the process has used.
pub(crate) fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for the call. If it fails, the time stays 0.
    #[expect(unsafe_code)]
    unsafe {
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time)
    };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Let the signal come each time that the process has used so much CPU time; 0 ends it.
#[expect(unsafe_code)]
fn set_timer(micros: i64) -> io::Result<()> {
    let interval = libc::timeval { tv_sec: micros / 1_000_000, tv_usec: micros % 1_000_000 };
    let timer = libc::itimerval { it_interval: interval, it_value: interval };
    // SAFETY: both pointers are valid for the call.
    let set = unsafe { libc::setitimer(libc::ITIMER_PROF, &timer, std::ptr::null_mut()) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The handler of SIGPROF: one sample of the thread that it interrupts.
///
/// It calls only what may be called in a handler: two calls of the system, and atomics. The error
/// number of the interrupted code is put back.
#[expect(unsafe_code)]
extern "C" fn handle(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if !SAMPLES.load(Acquire) || context.is_null() {
        return;
    }
    let Some(ring) = RING.get() else { return };
    // SAFETY: the system passes a context that is valid while the handler runs, and the location
    // of the error number is the thread's own.
    let (registers, error) = unsafe {
        let error = libc::__errno_location();
        (registers_of(&*context.cast::<libc::ucontext_t>()), (error, *error))
    };
    ring.write(|sample| {
        sample.registers = registers;
        // SAFETY: it has no arguments and cannot fail.
        sample.thread = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
        sample.bytes = read_stack(registers.sp, &mut sample.stack);
    });
    // SAFETY: as above.
    unsafe { *error.0 = error.1 };
}

#[cfg(target_arch = "x86_64")]
fn registers_of(context: &libc::ucontext_t) -> Registers {
    let of = |register: libc::c_int| context.uc_mcontext.gregs[register as usize] as u64;
    Registers { ip: of(libc::REG_RIP), sp: of(libc::REG_RSP), fp: of(libc::REG_RBP), lr: 0 }
}

#[cfg(target_arch = "aarch64")]
fn registers_of(context: &libc::ucontext_t) -> Registers {
    let machine = &context.uc_mcontext;
    Registers { ip: machine.pc, sp: machine.sp, fp: machine.regs[29], lr: machine.regs[30] }
}

/// Read the stack from `from` on, up to the first page that cannot be read. Returns the number of
/// bytes; 0 if the system does not let a process read itself in this way.
#[expect(unsafe_code)]
fn read_stack(from: u64, into: &mut [u8; STACK_BYTES]) -> usize {
    // One piece for each page, because a piece is read as a whole or not at all.
    let mut pages = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PAGES];
    let (mut at, mut left, mut count) = (from as usize, STACK_BYTES, 0);
    while left > 0 && count < PAGES {
        let length = (PAGE_BYTES - at % PAGE_BYTES).min(left);
        pages[count] = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: length };
        (at, left, count) = (at.wrapping_add(length), left - length, count + 1);
    }
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: STACK_BYTES };
    // SAFETY: the local piece is `into`. The remote ones may be anything: the system checks them.
    let read = unsafe {
        libc::process_vm_readv(libc::getpid(), &local, 1, pages.as_ptr(), count as u64, 0)
    };
    usize::try_from(read).unwrap_or_default()
}
