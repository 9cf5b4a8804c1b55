//! Choices that depend only on the seed and on the names of what is chosen, not on the order in
//! which they are made.

use std::time::Duration;

/// The choices for one thing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn of_seed(seed: u64) -> Self {
        Self(mixed(seed))
    }

    /// The choices for the thing of this name and number, which is a part of this one.
    pub(super) fn of(self, name: &str, number: u64) -> Self {
        let bytes = name.bytes().fold(self.0, |hash, byte| mixed(hash ^ u64::from(byte)));
        Self(mixed(bytes ^ number))
    }

    /// A number below `end`.
    pub(super) fn below(self, end: u64) -> u64 {
        self.0 % end
    }

    /// A time of 1 ms up to `longest_ms`.
    pub(super) fn time(self, longest_ms: u64) -> Duration {
        Duration::from_millis(1 + self.below(longest_ms))
    }
}

/// The finaliser of SplitMix64: each bit of the result depends on each bit of `value`.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
