//! What the handles of a guest stand for.

use bytes::Bytes;

/// A store that the guest has opened.
pub struct Bucket {
    /// Its name, which the tenant's document grants.
    pub(super) name: String,
    /// The number and the cursor of the next page of its keys, for guests that count pages.
    pub(super) next_page: Option<(u64, String)>,
}

/// A key with the value that it had.
pub struct Cas {
    pub(super) bucket: String,
    pub(super) key: String,
    /// None if it had none.
    pub(super) expected: Option<Bytes>,
}
