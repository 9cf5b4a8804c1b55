//! Deeds with the guest's own memory.

use std::hint::black_box;

use crate::Deed;

pub(crate) const DEEDS: &[(&str, Deed)] =
    &[("eat-memory", |_| eat()), ("touch-memory", |_| touch()), ("fill-memory", |_| fill())];

fn eat() -> ! {
    let mut held = Vec::new();
    loop {
        held.push(black_box(vec![1_u8; 1 << 20]));
    }
}

const PAGE_BYTES: usize = 4096;

/// Takes nearly all memory that a call has by default, and writes to every page again and again.
/// The host has to provide the pages, and to free them afterwards.
fn touch() -> ! {
    let mut memory = vec![0_u8; 60 << 20];
    loop {
        memory.iter_mut().step_by(PAGE_BYTES).for_each(|byte| *byte = byte.wrapping_add(1));
        black_box(&mut memory);
    }
}

/// Loops over one instruction that writes 48 MB. The host cannot interrupt the guest within it.
fn fill() -> ! {
    let mut memory = vec![0_u8; 48_000_000];
    loop {
        memory.fill(black_box(1));
    }
}
