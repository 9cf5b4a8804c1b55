//! The end of a compiler's answer.

/// The last bytes of an answer: the lengths of the parts before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) code: u64,
    pub(super) verdict: u64,
}

impl Lengths {
    pub(super) const BYTES: u64 = 16;

    pub(super) fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.code) << 64 | u128::from(self.verdict)).to_le_bytes()
    }

    pub(super) fn from_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_le_bytes(bytes);
        Self { code: (both >> 64) as u64, verdict: both as u64 }
    }
}
