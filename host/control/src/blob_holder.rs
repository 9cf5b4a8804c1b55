//! The holders of files that are uploaded before their release.

use gristmill_core::{Digest, Name};

/// A file, and the token that it came with. It is none for authors who may change all of the
/// server: they share their files.
pub(crate) type Key = (Option<Name>, Digest);

/// The holder of a file that is uploaded, asked for or dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// As in [`Key`].
    pub(crate) token: Option<Name>,
    /// Whether a file that came from elsewhere can be seen, too.
    pub(crate) sees_others: bool,
}

impl Holder {
    pub(crate) fn key(&self, digest: Digest) -> Key {
        (self.token.clone(), digest)
    }
}
