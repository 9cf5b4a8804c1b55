//! Numbers in a file's bytes.

/// Maximum chunks of a file that are searched for data that are not in its header.
pub(super) const CHUNKS_MAX: usize = 1000;

/// The `N` bytes from `start` on, if the file has all of them.
pub(super) fn at<const N: usize>(bytes: &[u8], start: usize) -> Option<[u8; N]> {
    bytes.get(start..)?.first_chunk().copied()
}

/// Four bytes, the most significant first.
pub(super) fn big_u32(bytes: &[u8], start: usize) -> Option<u32> {
    at(bytes, start).map(u32::from_be_bytes)
}

/// Four bytes, the least significant first.
pub(super) fn little_u32(bytes: &[u8], start: usize) -> Option<u32> {
    at(bytes, start).map(u32::from_le_bytes)
}

/// Two bytes, the least significant first.
pub(super) fn little_u16(bytes: &[u8], start: usize) -> Option<u32> {
    at(bytes, start).map(|two| u16::from_le_bytes(two).into())
}

/// Three bytes, the least significant first.
pub(super) fn little_u24(bytes: &[u8], start: usize) -> Option<u32> {
    at(bytes, start).map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
}
