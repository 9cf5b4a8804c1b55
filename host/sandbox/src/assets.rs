//! The files that a call may read: those of its plugin, and those that its pipeline names.
//!
//! Refuses to know where a file came from. Its bytes are held once, however many calls read them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

/// Files by the names under which a plugin opens them.
#[derive(Clone, Debug, Default)]
pub struct Assets(Arc<BTreeMap<Box<str>, Arc<Asset>>>);

impl Assets {
    /// The file of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Asset>> {
        self.0.get(name)
    }
}

impl FromIterator<(Box<str>, Arc<Asset>)> for Assets {
    fn from_iter<I: IntoIterator<Item = (Box<str>, Arc<Asset>)>>(files: I) -> Self {
        Self(Arc::new(files.into_iter().collect()))
    }
}

/// One version of a file.
#[derive(Debug)]
pub struct Asset {
    bytes: Bytes,
}

impl Asset {
    /// The file with these bytes.
    pub fn new(bytes: Bytes) -> Self {
        Self { bytes }
    }

    /// Its bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}
