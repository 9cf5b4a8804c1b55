//! Pseudo-random numbers, the same in each run.

pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Less than `limit`; 0 where that is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}
