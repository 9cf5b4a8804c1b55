//! The guest's own memory, and what the host has to do for it.

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

/// Takes nearly all that there is by default and writes to every page of it, over and over: the
/// host has to bring the pages in, and to take them away again.
fn touch() -> ! {
    let mut memory = vec![0_u8; 60 << 20];
    loop {
        memory.iter_mut().step_by(PAGE_BYTES).for_each(|byte| *byte = byte.wrapping_add(1));
        black_box(&mut memory);
    }
}

/// One instruction that writes 48 MB, in a loop: nothing looks at the clock within it.
fn fill() -> ! {
    let mut memory = vec![0_u8; 48_000_000];
    loop {
        memory.fill(black_box(1));
    }
}
