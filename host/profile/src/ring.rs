//! Samples between the signal handler, which writes them, and the thread that reads them.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::*};

/// The bytes of a stack that are kept. What is deeper is not seen.
pub(crate) const STACK_BYTES: usize = 32 << 10;

/// The samples that can wait for the reader, which looks every few milliseconds.
const SLOTS: usize = 128;

const FREE: u8 = 0;
const WRITING: u8 = 1;
const FULL: u8 = 2;

/// The registers of a thread that was interrupted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Registers {
    /// The instruction.
    pub(crate) ip: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    /// The return address, on processors with a register for it.
    pub(crate) lr: u64,
}

/// One sample.
pub(crate) struct Sample {
    pub(crate) registers: Registers,
    /// The thread's id in the system.
    pub(crate) thread: i32,
    /// The bytes of `stack` that were read, from the stack pointer on.
    pub(crate) bytes: usize,
    pub(crate) stack: [u8; STACK_BYTES],
}

struct Slot {
    state: AtomicU8,
    sample: UnsafeCell<Sample>,
}

/// A bounded queue that any thread can write to from a signal handler, and one reads.
pub(crate) struct Ring {
    slots: Box<[Slot]>,
    next: AtomicUsize,
    lost: AtomicU64,
}

// SAFETY: a sample is touched only by the owner of its slot: the writer that changed the state from
// FREE to WRITING until it stores FULL, then the one reader until it stores FREE.
#[expect(unsafe_code)]
unsafe impl Sync for Ring {}

impl Ring {
    pub(crate) fn new() -> Self {
        let empty = || Slot {
            state: AtomicU8::new(FREE),
            sample: UnsafeCell::new(Sample {
                registers: Registers::default(),
                thread: 0,
                bytes: 0,
                stack: [0; STACK_BYTES],
            }),
        };
        Self {
            slots: (0..SLOTS).map(|_| empty()).collect(),
            next: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// Write a sample, unless the reader is too far behind. Safe to call in a signal handler.
    pub(crate) fn write(&self, fill: impl FnOnce(&mut Sample)) {
        let slot = &self.slots[self.next.fetch_add(1, Relaxed) % SLOTS];
        if slot.state.compare_exchange(FREE, WRITING, Acquire, Relaxed).is_err() {
            self.lost.fetch_add(1, Relaxed);
            return;
        }
        // SAFETY: the exchange made this thread the slot's owner.
        #[expect(unsafe_code)]
        fill(unsafe { &mut *slot.sample.get() });
        slot.state.store(FULL, Release);
    }

    /// Read all samples that are there.
    pub(crate) fn read(&self, _: &mut Turn, mut take: impl FnMut(&Sample)) {
        for slot in &self.slots {
            if slot.state.load(Acquire) == FULL {
                // SAFETY: a full slot belongs to the one that has the turn.
                #[expect(unsafe_code)]
                take(unsafe { &*slot.sample.get() });
                slot.state.store(FREE, Release);
            }
        }
    }

    /// The samples that were lost since the last call, because all slots were full.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Relaxed)
    }
}

/// Whether somebody has the [`Turn`].
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The right to take samples and to read them, which one at a time has.
#[derive(Debug)]
pub(crate) struct Turn(());

impl Turn {
    /// None if somebody has it.
    pub(crate) fn take() -> Option<Self> {
        (!IS_TAKEN.swap(true, Acquire)).then_some(Self(()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        IS_TAKEN.store(false, Release);
    }
}
