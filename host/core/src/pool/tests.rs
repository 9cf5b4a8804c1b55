#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::block::{ALIGNMENT, Line, MemoryBlock};
use crate::free_blocks::POISON;
use crate::{Dtype, Tensor};

#[test]
fn buffers_are_aligned_and_hold_what_was_written() {
    let pool = BufferPool::new(1 << 20);
    for len in [0, 1, 63, 64, 4096, 4097, 600_000] {
        let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let buffer = pool.copy_from(&bytes);
        assert_eq!(buffer.as_bytes(), bytes);
        assert_eq!(buffer.as_bytes().as_ptr() as usize % ALIGNMENT, 0);
    }
}

#[test]
fn adopted_bytes_stay_where_they_are_unless_misaligned() {
    let pool = BufferPool::new(1 << 20);
    let bytes: Vec<u64> = vec![7; 100];
    let address = bytes.as_ptr() as usize;
    struct From(Vec<u64>, usize);
    impl AsRef<[u8]> for From {
        fn as_ref(&self) -> &[u8] {
            &bytemuck::cast_slice(&self.0)[self.1..]
        }
    }
    let aligned = pool.adopt(From(bytes.clone(), 8), 8);
    let misaligned = pool.adopt(From(bytes.clone(), 1), 8);
    let adopted = pool.adopt(From(bytes, 0), 8);
    assert_eq!(adopted.as_bytes().as_ptr() as usize, address);
    assert_eq!(aligned.as_bytes().len(), 792);
    assert_eq!(misaligned.as_bytes().as_ptr() as usize % ALIGNMENT, 0);
    assert_eq!(misaligned.as_bytes().len(), 799);
}

#[test]
fn a_buffer_that_is_given_up_while_it_is_written_returns_too() {
    let pool = BufferPool::new(1 << 20);
    let mut begun = pool.begin(5000);
    begun.append(&[7; 10]);
    let address = begun.as_mut().as_ptr();
    drop(begun);
    let again = pool.copy_from(&[2; 6000]);
    assert_eq!(again.as_bytes().as_ptr(), address);
    assert_eq!(again.as_bytes(), [2; 6000]);
}

#[test]
fn buffers_that_nobody_needs_are_freed_and_the_others_stay() {
    let pool = BufferPool::new(1 << 20);
    let three = [0; 3].map(|_| pool.copy_from(&[1; 8192]));
    drop(three);
    pool.trim();
    assert_eq!(pool.retained_bytes(), 3 * 8192, "they were in use since the last time");
    // Since then, one of them is in use now and then.
    drop(pool.copy_from(&[2; 8192]));
    pool.trim();
    assert_eq!(pool.retained_bytes(), 8192);
    drop(pool.copy_from(&[3; 8192]));
    pool.trim();
    assert_eq!(pool.retained_bytes(), 8192);
    pool.trim();
    assert_eq!(pool.retained_bytes(), 0);
    drop(pool.copy_from(&[4; 8192]));
    assert_eq!(pool.retained_bytes(), 8192);
}

/// A pool whose next buffer of that size had another owner before, and the bytes of that owner.
fn used(len: usize) -> (BufferPool, Vec<u8>) {
    let pool = BufferPool::new(1 << 20);
    let secret: Vec<u8> = (0..len).map(|i| (i % 251) as u8 | 1).collect();
    drop(pool.copy_from(&secret));
    // Builds without debug assertions leave the bytes in place.
    for block in pool.free.lists.lock().classes.iter_mut().flatten() {
        assert!(block.bytes().starts_with(&POISON));
        block.bytes_mut()[..len].copy_from_slice(&secret);
    }
    (pool, secret)
}

#[test]
fn an_earlier_owners_bytes_are_seen_by_nobody() {
    let len = 5000;
    let (pool, _) = used(len);
    assert_eq!(pool.fill(len, |_| ()).as_bytes(), vec![0; len]);
    let (pool, _) = used(len);
    let mut part = pool.begin(len);
    part.append(&[9; 100]);
    assert_eq!((part.as_ref().len(), part.as_mut().len(), part.room()), (100, 100, 4900));
    let part = part.freeze();
    assert_eq!(part.as_bytes()[..100], [9; 100]);
    assert_eq!(part.as_bytes()[100..], vec![0; 4900]);
}

#[test]
fn values_that_a_panic_left_behind_are_not_shown() {
    let pool = BufferPool::new(1 << 20);
    let mut buffer = pool.begin(5000);
    let values = (0..100_u32).map(|value| if value < 50 { 7 } else { panic!("as told") });
    let extending = std::panic::AssertUnwindSafe(|| buffer.extend(values));
    assert!(std::panic::catch_unwind(extending).is_err());
    assert_eq!(buffer.as_ref().len(), 0);
    assert_eq!(buffer.freeze().as_bytes(), vec![0; 5000]);
}

#[test]
fn values_are_written_one_after_the_other_whatever_their_alignment() {
    let (pool, _) = used(100);
    for odd in [0, 1] {
        let mut buffer = pool.begin(odd + 12);
        buffer.append(&vec![7; odd]);
        buffer.extend([1.0_f32, 2.0]);
        buffer.extend((3..9).map(f32::from as fn(u8) -> f32).take(1));
        let bytes: Vec<u8> = [1.0_f32, 2.0, 3.0].iter().flat_map(|v| v.to_ne_bytes()).collect();
        assert_eq!(buffer.freeze().as_bytes()[odd..], bytes);
    }
}

#[test]
fn a_dropped_buffer_is_used_again_but_the_pool_stays_bounded() {
    let pool = BufferPool::new(8192);
    let first = pool.copy_from(&[1; 5000]);
    let address = first.as_bytes().as_ptr();
    drop(first);
    let second = pool.copy_from(&[2; 6000]);
    assert_eq!(second.as_bytes().as_ptr(), address);
    drop((second, pool.copy_from(&[3; 5000]), pool.copy_from(&[4; 100_000])));
    assert!(pool.free.lists.lock().retained_bytes <= 8192);
}

#[test]
fn a_pool_full_of_one_size_keeps_others_all_the_same() {
    let pool = BufferPool::new(256 << 10);
    let large: Vec<_> = (0..4).map(|_| pool.begin(64 << 10)).collect();
    drop(large);
    let small = pool.copy_from(&[1; 5000]);
    let address = small.as_bytes().as_ptr();
    drop(small);
    assert_eq!(pool.copy_from(&[2; 5000]).as_bytes().as_ptr(), address);
    assert!(pool.free.lists.lock().retained_bytes <= 256 << 10);
    // A block larger than the whole limit evicts nothing.
    drop(pool.begin(300 << 10));
    assert_eq!(pool.copy_from(&[3; 5000]).as_bytes().as_ptr(), address);
}

/// Gives two blocks of the right length, then one of another.
struct Two(AtomicUsize);

impl MemorySource for Two {
    fn allocate(&self, len: usize) -> Option<Box<dyn MemoryBlock>> {
        let blocks_before = self.0.fetch_add(1, Ordering::Relaxed);
        let lines = if blocks_before < 2 { len / ALIGNMENT } else { 1 };
        Some(Box::new(Given(vec![Line([0; ALIGNMENT]); lines])))
    }
}

struct Given(Vec<Line>);

impl AsRef<[u8]> for Given {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

impl AsMut<[u8]> for Given {
    fn as_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

#[test]
fn a_sources_memory_is_used_and_used_again_and_replaced_where_it_does_not_fit() {
    let pool = BufferPool::of(Two(AtomicUsize::new(0)), 1 << 20);
    let (first, second) = (pool.copy_from(&[1; 5000]), pool.copy_from(&[2; 100]));
    assert!(first.is_sourced() && second.is_sourced());
    assert_eq!(first.as_bytes(), [1; 5000]);
    let address = first.as_bytes().as_ptr();
    drop(first);
    let again = pool.copy_from(&[3; 6000]);
    assert_eq!(again.as_bytes().as_ptr(), address);
    let third = pool.copy_from(&[4; 5000]);
    assert!(!third.is_sourced());
    assert_eq!(third.as_bytes(), [4; 5000]);
}

#[test]
fn a_single_part_is_copied_into_a_sources_memory_and_else_kept() {
    let (ordinary, sourced) =
        (BufferPool::new(1 << 20), BufferPool::of(Two(AtomicUsize::new(0)), 1 << 20));
    let shape = [2, 3].as_slice().into();
    let part = Tensor::new(Dtype::Uint8, shape, ordinary.copy_from(&[1, 2, 3, 4, 5, 6])).unwrap();
    let [kept, copied] =
        [&ordinary, &sourced].map(|pool| Tensor::stack(pool, [&part].into_iter()).unwrap());
    assert_eq!(kept.as_bytes().as_ptr(), part.as_bytes().as_ptr());
    assert_ne!(copied.as_bytes().as_ptr(), part.as_bytes().as_ptr());
    assert_eq!((copied.as_bytes(), copied.shape()), (part.as_bytes(), part.shape()));
    let shape = [].as_slice().into();
    let scalar = Tensor::new(Dtype::Uint8, shape, ordinary.copy_from(&[7])).unwrap();
    let copied = Tensor::stack(&sourced, [&scalar].into_iter()).unwrap();
    assert_eq!((copied.as_bytes(), copied.shape()), ([7].as_slice(), [0; 0].as_slice()));
}
